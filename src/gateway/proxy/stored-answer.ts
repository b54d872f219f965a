import type { Recording } from '../../gate/recording.ts';
import type { Reply } from '../../http/problem.ts';
import { discardBody, sendReply } from '../exchange/answers.ts';
import { type Exchange, isOpen } from '../exchange/exchange.ts';
import { type AnswerHead, type AnswerSink, breakOff, flushHead, writeHead } from './answer-sink.ts';

/**
 * An answer that every retry is to get: captured while it goes to the client, and kept before the client can see its end (contract,
 * "Idempotency"). Goes on where the client has gone (I11). Where another outcome may win, nothing is sent before it is kept.
 */
export class StoredAnswer implements AnswerSink {
  onReady: (() => void) | undefined;
  readonly #exchange: Exchange;
  readonly #recording: Recording;
  #head: AnswerHead | undefined;
  /** Undefined once the body is too long to be kept (I7). */
  #captured: Buffer[] | undefined = [];
  #size = 0;
  /** What the client has not been sent yet, the last piece at least. */
  #held: Buffer[] = [];
  #keep: Promise<Reply | undefined> | undefined;
  #isKept = false;

  constructor(exchange: Exchange, recording: Recording) {
    this.#exchange = exchange;
    this.#recording = recording;
    for (const event of ['drain', 'close']) exchange.response.on(event, () => this.onReady?.());
  }

  head(head: AnswerHead): void {
    this.#head = head;
    // An answer without a body ends with its head.
    if (this.#recording.storeBeforeSending || isEmpty(head, this.#exchange)) return;
    this.#sendHead();
    if (isFlowing(this.#exchange)) flushHead(this.#exchange.response);
  }

  data(chunk: Buffer): boolean {
    this.#capture(chunk);
    this.#held.push(chunk);
    if (this.#recording.storeBeforeSending && !this.#isKept) {
      // Too long to be kept is known now: as soon as that is settled the answer can flow.
      return this.#captured !== undefined;
    }
    const wantsMore = this.#release(1);
    // What is captured is held anyway: a client that does not read keeps nobody from the outcome.
    return wantsMore || this.#captured !== undefined;
  }

  end(): void {
    void this.#settle(this.#captured && Buffer.concat(this.#captured)).then((instead) => {
      if (instead !== undefined) {
        this.#replace(instead);
        return;
      }
      this.#sendHead();
      this.#release(0);
      if (isFlowing(this.#exchange)) this.#exchange.response.end();
      discardBody(this.#exchange);
    });
  }

  breakOff(): void {
    void this.#settle(undefined).then(() => breakOff(this.#exchange));
  }

  #capture(chunk: Buffer): void {
    if (this.#captured === undefined) return;
    this.#size += chunk.length;
    if (this.#size <= this.#recording.maxBytes) {
      this.#captured.push(chunk);
      return;
    }
    this.#captured = undefined;
    void this.#settle(undefined).then((instead) => {
      this.#isKept = true;
      if (instead !== undefined) this.#replace(instead);
      else if (this.#recording.storeBeforeSending) {
        this.#sendHead();
        this.#release(1);
      }
      this.onReady?.();
    });
  }

  /** Keeps the outcome, once. */
  #settle(body: Buffer | undefined): Promise<Reply | undefined> {
    const { status, fields } = this.#head as AnswerHead;
    this.#keep ??= this.#recording.store({ status, fields, body });
    return this.#keep;
  }

  #sendHead(): void {
    if (isOpen(this.#exchange)) writeHead(this.#exchange, this.#head as AnswerHead);
  }

  /** Sends what is held, less the last `keep` pieces. Returns whether more may come. */
  #release(keep: number): boolean {
    const { response } = this.#exchange;
    let wantsMore = true;
    while (this.#held.length > keep) {
      const chunk = this.#held.shift() as Buffer;
      if (isFlowing(this.#exchange)) wantsMore = response.write(chunk);
    }
    return wantsMore;
  }

  #replace(instead: Reply): void {
    this.#held = [];
    if (isOpen(this.#exchange)) sendReply(this.#exchange, instead);
    else if (isFlowing(this.#exchange)) breakOff(this.#exchange);
  }
}

/** Whether the client is there, and gets this answer: it may have been answered 504 meanwhile. */
function isFlowing({ response }: Exchange): boolean {
  return response.headersSent && !response.writableEnded && !response.destroyed;
}

function isEmpty({ status, fields }: AnswerHead, { request }: Exchange): boolean {
  if (request.method === 'HEAD' || status === 204 || status === 304) return true;
  const length = fields.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === 'content-length');
  return length !== -1 && Number(fields[length + 1]) === 0;
}
