import type { ServerResponse } from 'node:http';
import type { Passage } from '../../gate/gate.ts';
import type { Recording } from '../../gate/recording.ts';
import type { Reply } from '../../http/problem.ts';
import { matchesContentLength } from '../../http/stored-response.ts';
import { holdClose } from './defer-close.ts';
import { holdDestroy } from './defer-destroy.ts';
import { AnswerHead, type HeadersInput, settleHead } from './head.ts';
import { streamOf } from './http.ts';
import { Interposition } from './interposition.ts';
import { type Callback, fault, isChunk, split } from './write-arguments.ts';

/** Of an answer that broke off before its head. */
const NO_ANSWER = 500;

/**
 * Stands between a handler and its response where the answer is kept (I4): what the handler writes is captured, and the client gets the last
 * of it only when it was kept. A client that goes changes nothing for the handler (I11): its response takes in the rest.
 */
export class AnswerCapture {
  readonly #response: ServerResponse;
  readonly #passage: Passage;
  readonly #recording: Recording;
  readonly #isFromCache: () => boolean;
  readonly #letClose: () => void;
  readonly #letDestroy: () => void;
  readonly #between: Interposition;
  /** As the handler wrote it; what it sets later does not count. */
  #head: AnswerHead | undefined;
  #isHeadSent = false;
  /** Undefined where it will not be kept: too long, or broken off. */
  #body: Uint8Array[] | undefined = [];
  #length = 0;
  /** What the client does not have yet. */
  #held: Uint8Array[] = [];
  /** Callbacks of writes that are on their way. */
  readonly #owed = new Set<Callback>();
  /** The handler was told to wait. */
  #needsDrain = false;
  #hearsDrain = false;
  #isEnded = false;
  #endCallback: Callback | undefined;
  #kept: Promise<void> | undefined;
  #isKept = false;
  /** The client is gone, or got another answer: the rest goes nowhere. */
  #isSink = false;
  /** Events of a connection that is gone. */
  readonly #heldEvents: string[] = [];

  constructor(response: ServerResponse, passage: Passage, recording: Recording, isFromCache: () => boolean) {
    this.#response = response;
    this.#passage = passage;
    this.#recording = recording;
    this.#isFromCache = isFromCache;
    this.#letClose = holdClose(response);
    this.#letDestroy = holdDestroy(response, () => this.#hearBreakOff());
    this.#between = new Interposition(response, {
      methods: {
        write: (chunk, ...rest) => this.#write(chunk, ...split(rest)),
        end: (...args) =>
          typeof args[0] === 'function'
            ? this.#end(undefined, ...split(args))
            : this.#end(args[0], ...split(args.slice(1))),
        writeHead: (status, first, second) => this.#writeHead(status, first, second),
        flushHeaders: () => this.#flushHeaders(),
        destroy: (error) => this.#destroy(error),
        emit: (event, ...args) => this.#emit(event, ...args),
      },
      head: () => this.#commit(),
      seen: {
        headersSent: () => this.#head !== undefined || this.#isHeadSent,
        writableEnded: () => this.#isEnded || response.finished,
      },
    });
  }

  /** The handler failed: whatever it may still write, the outcome is kept without a body (I7). */
  fail(): void {
    if (this.#isEnded || this.#between.isOver) return;
    this.#body = undefined;
    void this.#keep();
  }

  #writeHead(status: unknown, first: unknown, second: unknown): ServerResponse {
    const response = this.#response;
    if (this.#isKept) return response;
    if (this.#head !== undefined) throw fault('ERR_HTTP_HEADERS_SENT', 'Cannot write headers after they are sent');
    const code = Number(status);
    // Node says what is wrong with it.
    if (!(code >= 100 && code <= 999)) return this.#between.call('writeHead', status) as ServerResponse;
    const outcome = { status: code, cached: this.#isFromCache() };
    const fields = settleHead(response, this.#passage, outcome, first as string, second as HeadersInput);
    response.statusCode = Math.trunc(code);
    if (typeof first === 'string') response.statusMessage = first;
    for (const name of Object.keys(fields)) response.setHeader(name, fields[name] as string);
    // The mark is the gate's alone to give.
    response.removeHeader('idempotency-replayed');
    this.#head = new AnswerHead(response);
    return response;
  }

  #flushHeaders(): void {
    this.#commit();
    if (this.#isSink || this.#recording.storeBeforeSending) return;
    this.#beginSending();
    this.#between.call('flushHeaders');
  }

  #write(chunk: unknown, encoding: unknown, callback: Callback | undefined): boolean {
    if (this.#isEnded) {
      if (callback) process.nextTick(callback, fault('ERR_STREAM_WRITE_AFTER_END', 'write after end'));
      return false;
    }
    if (!isChunk(chunk)) return this.#between.call('write', chunk) as boolean;
    if (this.#isKept) return this.#swallow(callback);
    this.#commit();
    this.#take(chunk, encoding);
    const { storeBeforeSending } = this.#recording;
    // Held back whole, and too long to be kept: nothing is to be waited for any more but that.
    if (storeBeforeSending && this.#body === undefined && !this.#isSink) {
      this.#owe(callback);
      this.#needsDrain = true;
      void this.#keep();
      return false;
    }
    if (chunk.length === 0) this.#flushHeaders();
    if (!storeBeforeSending && this.#held.length > 1) {
      this.#beginSending();
      this.#needsDrain = !this.#between.call('write', this.#held.shift(), this.#owe(callback));
      if (this.#needsDrain) this.#hearDrain();
    } else if (callback) process.nextTick(callback);
    return !this.#needsDrain;
  }

  #end(chunk: unknown, encoding: unknown, callback: Callback | undefined): ServerResponse {
    const response = this.#response;
    if (this.#isEnded) {
      if (callback) process.nextTick(callback, fault('ERR_STREAM_ALREADY_FINISHED', 'end after end'));
      return response;
    }
    const isEmpty = chunk === undefined || chunk === null;
    if (!isEmpty && !isChunk(chunk)) return this.#between.call('end', chunk) as ServerResponse;
    this.#commit();
    if (!isEmpty && !this.#isKept) this.#take(chunk as string | Uint8Array, encoding);
    this.#isEnded = true;
    this.#endCallback = callback;
    if (this.#isKept) this.#leave();
    else void this.#keep();
    return response;
  }

  /** The connection is broken off at once: no client takes that for the end of an answer. */
  #destroy(error: unknown): unknown {
    this.fail();
    return this.#leave(() => this.#breakOff(error));
  }

  /**
   * Somebody breaks the connection off without an error, as finalhandler, of Express and Connect, does for an error that comes when its handler has
   * begun to answer: the handler will not end, which is an outcome. On Bun a client that goes looks the same: it is taken for that.
   * @returns whether it is to wait: behind the handler's end, until the answer is kept
   */
  #hearBreakOff(): boolean {
    if (this.#between.isOver) return false;
    if (this.#isEnded) return true;
    const isOurs = process.versions.bun === undefined && !this.#response.req.socket.readableEnded;
    if (this.#head !== undefined && isOurs) this.fail();
    return false;
  }

  #emit(event: unknown, ...args: unknown[]): unknown {
    if (event === 'drain') this.#needsDrain = false;
    // HTTP/2 also says `finish` of an answer that was broken off, just before.
    if ((event !== 'close' && event !== 'finish') || this.#isKept) return this.#between.call('emit', event, ...args);
    // Whoever pipes into the response would stop at it.
    this.#heldEvents.push(event);
    this.#isSink = true;
    this.#held = [];
    // Without its dead connection it looks to frameworks like one that can still be written to, which it is.
    if (this.#response.socket) this.#response.detachSocket(this.#response.socket);
    this.#letOn();
    return true;
  }

  /** Fixes the head, by way of whoever listens for it. */
  #commit(): void {
    if (this.#head === undefined && !this.#isKept) this.#response.writeHead(this.#response.statusCode);
  }

  /** Something else was sent: what the handler still writes is for nobody. */
  #swallow(callback: Callback | undefined): true {
    if (callback) process.nextTick(callback);
    return true;
  }

  /** In a copy, since a handler may use its buffer again as soon as it was told that it was written. */
  #take(chunk: string | Uint8Array, encoding: unknown): void {
    if (this.#hasNoBody()) return;
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk, encoding as BufferEncoding) : Buffer.from(chunk);
    if (bytes.length === 0) return;
    this.#length += bytes.length;
    if (this.#length > this.#recording.maxBytes) this.#body = undefined;
    this.#body?.push(bytes);
    if (!this.#isSink) this.#held.push(bytes);
  }

  #keep(): Promise<void> {
    this.#kept ??= this.#recording.store(this.#answer()).then((instead) => this.#whenKept(instead));
    return this.#kept;
  }

  #answer() {
    const head = this.#head;
    const body = this.#body;
    this.#body = undefined;
    if (head === undefined) {
      this.#passage.settle({ status: NO_ANSWER });
      return { status: NO_ANSWER, fields: [], body: undefined };
    }
    const { status, fields } = head;
    const isKept = body !== undefined && (this.#hasNoBody() || matchesContentLength(fields, this.#length));
    return { status, fields, body: isKept ? Buffer.concat(body) : undefined };
  }

  /** Node leaves out what a handler writes where there can be none. */
  #hasNoBody(): boolean {
    const status = this.#head?.status;
    return status === 204 || status === 304 || this.#response.req.method === 'HEAD';
  }

  #whenKept(instead: Reply | undefined): void {
    this.#isKept = true;
    if (this.#between.isOver) return;
    try {
      if (this.#isSink) this.#leave();
      else if (instead !== undefined) this.#sendInstead(instead);
      else this.#sendRest();
    } catch (error) {
      // A field or reason that Node will not send; the handler is not there to be told any more.
      this.#leave(() => this.#breakOff(error));
    }
  }

  #sendRest(): void {
    const last = this.#isEnded ? this.#held.pop() : undefined;
    const held = this.#held.splice(0);
    if (this.#head !== undefined) this.#beginSending();
    let hasRoom = true;
    for (const chunk of held) hasRoom = this.#between.call('write', chunk) === true;
    // Left first: HTTP/2 writes its last piece by the response's own means.
    this.#leave(() => this.#isEnded && this.#between.call('end', last ?? this.#endCallback, last && this.#endCallback));
    if (hasRoom) this.#letOn();
  }

  /** Another outcome counts: the client gets it, or, where it has some of this one already, nothing more. */
  #sendInstead({ status, headers, body }: Reply): void {
    const response = this.#response;
    if (this.#isHeadSent) return void this.#leave(() => this.#breakOff());
    this.#isSink = true;
    this.#isHeadSent = true;
    for (const name of response.getHeaderNames()) response.removeHeader(name);
    if (!streamOf(response)) response.statusMessage = '';
    this.#between.call('writeHead', status, headers);
    // Not by `end` alone, which in HTTP/2 would write by the response's own means: those are the handler's, and go nowhere.
    if (body.length > 0 && response.req.method !== 'HEAD') this.#between.call('write', body);
    this.#between.call('end', this.#endCallback);
    if (this.#isEnded) this.#leave();
    else this.#letOn();
  }

  #beginSending(): void {
    if (this.#isHeadSent) return;
    this.#isHeadSent = true;
    // Node asks for the head itself, so that it can say how long a short answer is.
    this.#between.leaveHead();
    this.#head?.restore(this.#response);
  }

  /** Without an error HTTP/2 would tell of an end like any other. */
  #breakOff(error?: unknown): unknown {
    const response = this.#response;
    const why = error ?? (streamOf(response) && fault('ERR_STREAM_PREMATURE_CLOSE', 'the answer is broken off'));
    return this.#between.call('destroy', why);
  }

  /** Leaves the response to itself. */
  #leave(last?: () => unknown): unknown {
    this.#held = [];
    this.#between.leave();
    const result = last?.();
    this.#payOwed();
    for (const event of this.#heldEvents.splice(0)) this.#between.call('emit', event);
    this.#letClose();
    this.#letDestroy();
    return result;
  }

  /** What stands in front may tell of it elsewhere than on the response. */
  #hearDrain(): void {
    if (this.#hearsDrain) return;
    this.#hearsDrain = true;
    this.#between.call('on', 'drain', () => {
      if (this.#needsDrain) this.#emit('drain');
    });
  }

  /** The handler need not wait any more. */
  #letOn(): void {
    this.#payOwed();
    if (this.#needsDrain) this.#response.emit('drain');
  }

  #owe(callback: Callback | undefined): Callback | undefined {
    if (callback === undefined) return undefined;
    const pay: Callback = (error) => {
      // What became of the connection is nothing to a handler whose answer is kept all the same.
      if (this.#owed.delete(pay)) callback(this.#isSink ? undefined : error);
    };
    this.#owed.add(pay);
    return pay;
  }

  #payOwed(): void {
    for (const pay of [...this.#owed]) process.nextTick(pay);
  }
}
