import type { CapturedResponse, ResponseRecording } from 'headgate/gate';
import type { Reply } from 'headgate/http';
import { AnswerTape } from 'headgate/internal';
import { discardBody, sendReply } from '../exchange/answers.ts';
import { type Exchange, isOpen } from '../exchange/exchange.ts';
import {
  type AnswerSink,
  breakOff,
  endWith,
  flushIfOpen,
  isSmall,
  type UpstreamHead,
  writeHead,
} from './answer-sink.ts';

/**
 * A response that is stored for retries. It is recorded while it is sent, and stored before the client can see its end.
 * Recording continues if the client disconnects (I11).
 */
export class StoredAnswer implements AnswerSink {
  onReady: (() => void) | undefined;
  readonly #exchange: Exchange;
  readonly #recording: ResponseRecording;
  readonly #tape: AnswerTape;
  #isHeadSent = false;
  /** Bytes of the recording that are counted as buffered. */
  #counted = 0;
  #head: UpstreamHead | undefined;
  /** How the upstream's response ended, once it did. */
  #ending: 'end' | 'breakOff' | undefined;

  constructor(exchange: Exchange, recording: ResponseRecording) {
    this.#exchange = exchange;
    this.#recording = recording;
    this.#tape = new AnswerTape(recording, { method: exchange.request.method });
    exchange.response.on('drain', () => {
      this.#sendData();
      this.onReady?.();
    });
    exchange.response.on('close', () => this.onReady?.());
  }

  /** False if the body is too long to store, and the client left or was already answered. */
  get isNeeded(): boolean {
    return this.#tape.isRecording || isOpen(this.#exchange) || isSending(this.#exchange);
  }

  head(head: UpstreamHead): void {
    this.#head = head;
    this.#tape.begin(head);
    if (this.#tape.maySendHead) this.#sendHead();
  }

  data(chunk: Buffer): boolean {
    this.#tape.write(chunk);
    if (!this.#tape.isRecording || !this.#count(chunk.length)) this.#stopRecording();
    const hasRoom = this.#hasRoom && (isSmall(chunk) || this.#sendData());
    // The recorded body is in memory anyway, so a client that does not read must not delay the outcome. The unread part
    // waits on the tape, which merges small pieces.
    return hasRoom || this.#tape.isRecording;
  }

  flush(): boolean {
    const hasRoom = this.#hasRoom && this.#sendData();
    // The head must not wait for a slow body.
    if (this.#tape.maySendHead && !this.#isHeadSent) {
      this.#isHeadSent = true;
      flushIfOpen(this.#exchange.response);
    }
    return hasRoom || this.#tape.isRecording;
  }

  end(): void {
    this.#finish('end');
    // Nor for the store. If the outcome is stored soon, all is sent in one write.
    if (!this.#tape.isStored) setImmediate(() => this.flush());
  }

  breakOff(): void {
    this.#finish('breakOff');
  }

  /** Whether the client takes more now. */
  get #hasRoom(): boolean {
    return this.#tape.maySendHead && !this.#exchange.response.writableNeedDrain;
  }

  #count(bytes: number): boolean {
    if (this.#exchange.buffer?.add(bytes) === false) return false;
    this.#counted += bytes;
    return true;
  }

  /** The body is too long to be stored, or the memory for it is used up. So the outcome is known already. */
  #stopRecording(): void {
    this.#store(this.#tape.breakOff());
    this.#exchange.buffer?.remove(this.#counted);
    this.#counted = 0;
  }

  #finish(ending: 'end' | 'breakOff'): void {
    this.#ending = ending;
    this.#store(this.#tape[ending]());
    if (this.#tape.isStored) this.#sendEnd();
  }

  /** Stores the outcome, once. */
  #store(captured: CapturedResponse | undefined): void {
    if (captured !== undefined) void this.#recording.store(captured).then((instead) => this.#whenStored(instead));
  }

  #whenStored(instead: Reply | undefined): void {
    this.#tape.stored(instead !== undefined);
    if (instead !== undefined) this.#sendInstead(instead);
    else {
      if (this.#ending !== 'breakOff') this.#sendHead();
      if (this.#ending === undefined) this.#sendData();
      this.#sendEnd();
    }
    this.onReady?.();
  }

  #sendHead(): void {
    if (isOpen(this.#exchange)) writeHead(this.#exchange, this.#head as UpstreamHead);
  }

  /** @returns whether the response takes more */
  #sendData(): boolean {
    let hasRoom = true;
    for (const piece of this.#tape.sendable())
      if (isSending(this.#exchange)) hasRoom = this.#exchange.response.write(piece);
    return hasRoom;
  }

  /**
   * Ends the client's response with the rest, if the upstream's response ended. Not if the gateway sent another
   * response, which ends by itself.
   */
  #sendEnd(): void {
    if (this.#tape.isDiscarded) return;
    if (this.#ending === 'breakOff') breakOff(this.#exchange);
    if (this.#ending !== 'end') return;
    if (isSending(this.#exchange)) endWith(this.#exchange.response, this.#tape.sendable());
    discardBody(this.#exchange);
  }

  #sendInstead(instead: Reply): void {
    if (isOpen(this.#exchange)) sendReply(this.#exchange, instead);
    else if (isSending(this.#exchange)) breakOff(this.#exchange);
  }
}

/** Whether this response is on its way to a connected client. The client may already be answered with a 504. */
function isSending({ response }: Exchange): boolean {
  return response.headersSent && !response.writableEnded && !response.destroyed;
}

/** An error answer of the gateway, as it is stored. */
export function capturedFrom({ status, headers, body }: Reply): CapturedResponse {
  return { status, fields: Object.entries(headers).flat(2), body: Buffer.from(body) };
}
