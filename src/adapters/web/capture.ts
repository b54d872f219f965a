import type { CapturedResponse, Recording } from '../../gate/recording.ts';
import type { Reply } from '../../http/problem.ts';
import { matchesContentLength } from '../../http/stored-response.ts';

const NOTHING = new Uint8Array(0);
/** Turns of the microtask queue in which the pieces of a body that is in memory come, in every runtime seen. */
const TURNS = 20;

/** What became of a handler's answer. */
export interface Captured {
  /** To be sent in place of the handler's own: another outcome counts. */
  readonly instead?: Reply | undefined;
  /** To be sent with the handler's head; null: nothing, as replays send it; undefined: the handler's own, as it is. */
  readonly body?: ReadableStream<Uint8Array> | Uint8Array | null | undefined;
  /** What goes on after the head was sent. */
  readonly rest?: Promise<void> | undefined;
}

/**
 * Captures a handler's answer for its retries (I4). What is in memory is kept before anything of it is sent; a stream goes on one piece behind, and its
 * client sees its end when it was kept.
 * @param hasBody false for an answer whose body nobody will see, as to HEAD
 */
export async function captureAnswer(response: Response, recording: Recording, hasBody: boolean): Promise<Captured> {
  const { status, body } = response;
  const head = { status, fields: [...response.headers].flat() };
  if (!hasBody || body === null) return { instead: await recording.store({ ...head, body: NOTHING }) };
  // A stream that somebody has read already, or an upgrade: not ours to send, or to judge.
  if (body.locked || response.bodyUsed) return { instead: await recording.store({ ...head, body: undefined }) };
  return new BodyCapture(body.getReader(), recording, head).begin();
}

class BodyCapture {
  readonly #reader: ReadableStreamDefaultReader<unknown>;
  readonly #recording: Recording;
  readonly #head: Omit<CapturedResponse, 'body'>;
  /** Undefined where it will not be kept: too long, or broken off. */
  #body: Uint8Array[] | undefined = [];
  #length = 0;
  /** What the client does not have yet. */
  #held: Uint8Array[] = [];
  #reading: Promise<void> | undefined;
  #isEnded = false;
  #failure: { readonly error: unknown } | undefined;
  #isKept = false;
  /** The client is gone, or got another answer: the rest goes nowhere. */
  #isSink = false;
  #letOn = (): void => {};

  constructor(
    reader: ReadableStreamDefaultReader<unknown>,
    recording: Recording,
    head: Omit<CapturedResponse, 'body'>,
  ) {
    this.#reader = reader;
    this.#recording = recording;
    this.#head = head;
  }

  async begin(): Promise<Captured> {
    const { storeBeforeSending } = this.#recording;
    while (!this.#isEnded && this.#body !== undefined) {
      const reading = this.#read();
      if (!storeBeforeSending && !(await isSoon(reading))) break;
      await reading;
    }
    if (!storeBeforeSending && !this.#isEnded) return this.#stream();
    const whole = this.#body;
    const instead = await this.#keep();
    if (instead !== undefined) {
      this.#isSink = true;
      return { instead, rest: this.#pump() };
    }
    if (!this.#isEnded || whole === undefined) return this.#stream();
    return { body: whole.length === 0 ? null : join(whole, this.#length) };
  }

  /** The rest of the answer, as fast as it can be kept, or else as its client takes it. */
  #stream(): Captured {
    let rest: Promise<void> | undefined;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        rest = this.#pump(controller);
      },
      pull: () => this.#letOn(),
      cancel: () => {
        // The client is gone, the operation is not (I11).
        this.#isSink = true;
        this.#letOn();
      },
    });
    return { body, rest };
  }

  async #pump(controller?: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    for (;;) {
      // The last piece waits for the end.
      await this.#give(controller, this.#isKept ? 0 : 1);
      if (this.#isEnded) break;
      await this.#read();
    }
    const isReplaced = !this.#isKept && (await this.#keep()) !== undefined;
    if (isReplaced) this.#failure = { error: new Error('Another outcome of this idempotency key counts.') };
    if (this.#failure === undefined) await this.#give(controller, 0);
    if (controller === undefined || this.#isSink) return;
    if (this.#failure === undefined) controller.close();
    else controller.error(this.#failure.error);
  }

  /** Hands pieces on until so many are left. Those that are held for recording anyway need no room. */
  async #give(controller: ReadableStreamDefaultController<Uint8Array> | undefined, left: number): Promise<void> {
    while (this.#held.length > left) {
      const piece = this.#held.shift() as Uint8Array;
      while (this.#body === undefined && !this.#isSink && (controller?.desiredSize ?? 1) <= 0) {
        await new Promise<void>((resolve) => {
          this.#letOn = resolve;
        });
      }
      if (!this.#isSink) controller?.enqueue(piece);
    }
  }

  /** The next piece, or the end; never rejects. */
  #read(): Promise<void> {
    this.#reading ??= this.#reader
      .read()
      .then(
        ({ done, value }) => (done ? this.#end() : this.#take(value)),
        (error: unknown) => this.#end({ error }),
      )
      .finally(() => {
        this.#reading = undefined;
      });
    return this.#reading;
  }

  #take(value: unknown): void {
    const piece = typeof value === 'string' ? new TextEncoder().encode(value) : value;
    if (!(piece instanceof Uint8Array)) {
      const error = new TypeError('A body is a stream of Uint8Array.');
      this.#reader.cancel(error).catch(() => {});
      this.#end({ error });
      return;
    }
    if (piece.length === 0) return;
    this.#length += piece.length;
    if (this.#length > this.#recording.maxBytes) this.#body = undefined;
    // In a copy: whoever reads a stream of bytes may take their buffer away.
    this.#body?.push(piece.slice());
    if (!this.#isSink) this.#held.push(piece);
  }

  #end(failure?: { readonly error: unknown }): void {
    this.#isEnded = true;
    this.#failure = failure;
    if (failure !== undefined) this.#body = undefined;
  }

  #keep(): Promise<Reply | undefined> {
    const isKept = this.#isEnded && this.#body !== undefined && matchesContentLength(this.#head.fields, this.#length);
    const body = isKept ? join(this.#body ?? [], this.#length) : undefined;
    this.#isKept = true;
    this.#body = undefined;
    return this.#recording.store({ ...this.#head, body });
  }
}

/** Whether a promise settles without anything happening outside: what it waits for is there already. */
async function isSoon(promise: Promise<void>): Promise<boolean> {
  let isSettled = false;
  void promise.then(() => {
    isSettled = true;
  });
  for (let turn = 0; turn < TURNS && !isSettled; turn++) await undefined;
  return isSettled;
}

function join(pieces: readonly Uint8Array[], length: number): Uint8Array {
  const [only] = pieces;
  if (pieces.length === 1 && only !== undefined) return only;
  const all = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}
