import { AnswerTape } from '../../gate/answer-tape.ts';
import type { CapturedHead, CapturedResponse, ResponseRecording } from '../../gate/recording.ts';
import type { Reply } from '../../http/problem.ts';

const NOTHING = new Uint8Array(0);
/**
 * In every runtime tested, the pieces of a body that is in memory arrive within this many turns of the microtask queue.
 */
const MAX_TURNS = 20;

/** The response to send after a handler's response was captured. */
export interface Captured {
  /** The reply to send instead of the handler's response, because another outcome counts. */
  readonly instead?: Reply | undefined;
  /**
   * The body to send with the handler's head. Null: no body, as in a replay. Undefined: the handler's response as it
   * is.
   */
  readonly body?: ReadableStream<Uint8Array> | Uint8Array | null | undefined;
  /** Settles when the whole response is stored and sent. */
  readonly rest?: Promise<void> | undefined;
}

/**
 * Captures the response of a handler, so that it can be stored for retries (I4). A body in memory is stored before any
 * of it is sent. A stream is sent one piece behind, and its client sees the end only after the response is stored.
 * @param hasBody false if the client will not see the body, as for HEAD
 */
export async function captureAnswer(
  response: Response,
  recording: ResponseRecording,
  hasBody: boolean,
): Promise<Captured> {
  const { status, body } = response;
  const head = { status, fields: [...response.headers].flat() };
  if (!hasBody || body === null) return { instead: await recording.store({ body: NOTHING, ...head }) };
  // The body was read already, or belongs to an upgrade: it cannot be recorded here.
  if (body.locked || response.bodyUsed) return { instead: await recording.store({ body: undefined, ...head }) };
  return new BodyCapture(body.getReader(), recording, head).run();
}

class BodyCapture {
  readonly #reader: ReadableStreamDefaultReader<unknown>;
  readonly #recording: ResponseRecording;
  readonly #tape: AnswerTape;
  #reading: Promise<void> | undefined;
  #isEnded = false;
  #failure: { readonly error: unknown } | undefined;
  /** Wakes the sender, which waits until the client reads more. */
  #wakeSender = (): void => {};

  constructor(reader: ReadableStreamDefaultReader<unknown>, recording: ResponseRecording, head: CapturedHead) {
    this.#reader = reader;
    this.#recording = recording;
    // A copy is recorded, since the code that reads the response may detach its buffers.
    this.#tape = new AnswerTape(recording, { copy: true });
    this.#tape.begin(head);
  }

  async run(): Promise<Captured> {
    const tape = this.#tape;
    const { storeBeforeSending } = this.#recording;
    while (!this.#isEnded && tape.isRecording) {
      const reading = this.#read();
      if (!storeBeforeSending && !(await isSoon(reading))) break;
      await reading;
    }
    if (!storeBeforeSending && !this.#isEnded) return this.#stream();
    const captured = this.#finish();
    const instead = await this.#store(captured);
    if (instead !== undefined) return { instead, rest: this.#pump() };
    const { body } = captured;
    // Too long, broken off, or not as long as its head says: the client gets it as it comes.
    if (body === undefined) return this.#stream();
    return { body: body.length === 0 ? null : body };
  }

  /**
   * Sends the rest as a stream: as fast as it comes while it is recorded, and afterwards as fast as the client reads.
   */
  #stream(): Captured {
    let rest: Promise<void> | undefined;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        rest = this.#pump(controller);
      },
      pull: () => this.#wakeSender(),
      cancel: () => {
        // The client disconnected, but the operation goes on (I11).
        this.#tape.discard();
        this.#wakeSender();
      },
    });
    return { body, rest };
  }

  async #pump(controller?: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    for (;;) {
      await this.#send(controller);
      if (this.#isEnded) break;
      await this.#read();
    }
    const isReplaced = !this.#tape.isStored && (await this.#store(this.#finish())) !== undefined;
    if (isReplaced) this.#failure = { error: new Error('Another outcome of this idempotency key counts.') };
    if (this.#failure !== undefined) {
      controller?.error(this.#failure.error);
      return;
    }
    await this.#send(controller);
    if (!this.#tape.isDiscarded) controller?.close();
  }

  /**
   * Sends the pieces that may be sent now. While the body is recorded it is in memory anyway, so the client need not
   * have room.
   */
  async #send(controller: ReadableStreamDefaultController<Uint8Array> | undefined): Promise<void> {
    for (const piece of this.#tape.sendable()) {
      while (!this.#tape.isRecording && !this.#tape.isDiscarded && (controller?.desiredSize ?? 1) <= 0) {
        await new Promise<void>((resolve) => {
          this.#wakeSender = resolve;
        });
      }
      if (!this.#tape.isDiscarded) controller?.enqueue(piece);
    }
  }

  /** Reads the next piece, or the end. Never rejects. */
  #read(): Promise<void> {
    this.#reading ??= this.#reader
      .read()
      .then(
        ({ done, value }) => (done ? this.#end() : this.#write(value)),
        (error: unknown) => this.#end({ error }),
      )
      .finally(() => {
        this.#reading = undefined;
      });
    return this.#reading;
  }

  #write(value: unknown): void {
    const piece = typeof value === 'string' ? new TextEncoder().encode(value) : value;
    if (piece instanceof Uint8Array) {
      this.#tape.write(piece);
      return;
    }
    const error = new TypeError('A response body must be a stream of Uint8Array.');
    this.#reader.cancel(error).catch(() => {});
    this.#end({ error });
  }

  #end(failure?: { readonly error: unknown }): void {
    this.#isEnded = true;
    this.#failure = failure;
  }

  /** The response as it is stored: without a body if the stream failed, or did not end because it is too long. */
  #finish(): CapturedResponse {
    const isComplete = this.#isEnded && this.#failure === undefined;
    return (isComplete ? this.#tape.end() : this.#tape.breakOff()) as CapturedResponse;
  }

  async #store(captured: CapturedResponse): Promise<Reply | undefined> {
    const instead = await this.#recording.store(captured);
    this.#tape.stored(instead !== undefined);
    return instead;
  }
}

/** Whether a promise settles without any outside event, because its result is in memory. */
async function isSoon(promise: Promise<void>): Promise<boolean> {
  let isSettled = false;
  void promise.then(() => {
    isSettled = true;
  });
  for (let turn = 0; turn < MAX_TURNS && !isSettled; turn++) await undefined;
  return isSettled;
}
