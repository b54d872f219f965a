import type { ServerResponse } from 'node:http';
import { AnswerTape } from '../../gate/answer-tape.ts';
import type { GateOutcome, Passage } from '../../gate/gate.ts';
import type { CapturedResponse, ResponseRecording } from '../../gate/recording.ts';
import type { Reply } from '../../http/problem.ts';
import { deferClose, deferDestroy } from './defer-close.ts';
import { AnswerHead, type HeadersInput, settleHead } from './head.ts';
import { streamOf } from './http.ts';
import { Interposition } from './interposition.ts';
import { type Callback, isChunk, splitArguments, streamError } from './write-arguments.ts';

/**
 * Captures the response of a handler, so that it can be stored for retries (I4). The client gets the last piece only
 * after the response is stored. If the client disconnects, the handler does not notice: the capture takes the rest of
 * its response (I11).
 */
export class AnswerCapture {
  readonly #response: ServerResponse;
  readonly #passage: Passage;
  readonly #recording: ResponseRecording;
  readonly #outcomeOf: (status: number) => GateOutcome;
  readonly #tape: AnswerTape;
  readonly #stopDeferringClose: () => void;
  readonly #stopDeferringDestroy: () => void;
  readonly #interposition: Interposition;
  /** As the handler wrote it. Fields that it sets later do not count. */
  #head: AnswerHead | undefined;
  #isHeadSent = false;
  /** Callbacks of unfinished writes. */
  readonly #pendingCallbacks = new Set<Callback>();
  /** The handler was asked to wait for `drain`. */
  #needsDrain = false;
  #watchesDrain = false;
  #isEnded = false;
  #endCallback: Callback | undefined;
  /** Events of a lost connection, emitted when the capture is over. */
  readonly #deferredEvents: string[] = [];

  /** @param outcomeOf returns the facts that the gate needs about a response with this status */
  constructor(
    response: ServerResponse,
    passage: Passage,
    recording: ResponseRecording,
    outcomeOf: (status: number) => GateOutcome,
  ) {
    this.#response = response;
    this.#passage = passage;
    this.#recording = recording;
    this.#outcomeOf = outcomeOf;
    this.#tape = new AnswerTape(recording, { method: response.req.method });
    this.#stopDeferringClose = deferClose(response);
    this.#stopDeferringDestroy = deferDestroy(response, () => this.#mustDestroyWait());
    this.#interposition = new Interposition(response, {
      methods: {
        write: (chunk, ...rest) => this.#write(chunk, ...splitArguments(rest)),
        end: (...args) =>
          typeof args[0] === 'function'
            ? this.#end(undefined, ...splitArguments(args))
            : this.#end(args[0], ...splitArguments(args.slice(1))),
        writeHead: (status, first, second) => this.#writeHead(status, first, second),
        flushHeaders: () => this.#flushHeaders(),
        destroy: (error) => this.#destroy(error),
        emit: (event, ...args) => this.#emit(event, ...args),
      },
      writeImplicitHead: () => this.#fixHead(),
      getters: {
        headersSent: () => this.#head !== undefined || this.#isHeadSent,
        writableEnded: () => this.#isEnded || response.finished,
      },
    });
  }

  /** The handler failed. The outcome is stored without a body, even if the handler still writes (I7). */
  fail(): void {
    if (this.#isEnded || this.#interposition.isRemoved) return;
    this.#store(this.#tape.breakOff());
  }

  #writeHead(status: unknown, first: unknown, second: unknown): ServerResponse {
    const response = this.#response;
    if (this.#tape.isStored) return response;
    if (this.#head !== undefined)
      throw streamError('ERR_HTTP_HEADERS_SENT', 'Cannot write headers after they are sent');
    const code = Number(status);
    // Node throws the error for an invalid status.
    if (!(code >= 100 && code <= 999)) return this.#interposition.call('writeHead', status) as ServerResponse;
    const outcome = this.#outcomeOf(code);
    const fields = settleHead(response, this.#passage, outcome, first as string, second as HeadersInput);
    response.statusCode = Math.trunc(code);
    if (typeof first === 'string') response.statusMessage = first;
    for (const name of Object.keys(fields)) response.setHeader(name, fields[name] as string);
    // Only the gate may mark a response as a replay.
    response.removeHeader('idempotency-replayed');
    this.#head = new AnswerHead(response);
    this.#tape.begin(this.#head);
    return response;
  }

  #flushHeaders(): void {
    this.#fixHead();
    if (this.#tape.isDiscarded || !this.#tape.maySendHead) return;
    this.#beginSending();
    this.#interposition.call('flushHeaders');
  }

  #write(chunk: unknown, encoding: unknown, callback: Callback | undefined): boolean {
    if (this.#isEnded) {
      if (callback) process.nextTick(callback, streamError('ERR_STREAM_WRITE_AFTER_END', 'write after end'));
      return false;
    }
    if (!isChunk(chunk)) return this.#interposition.call('write', chunk) as boolean;
    // The client got another response: later writes of the handler are ignored.
    if (this.#tape.isStored) {
      if (callback) process.nextTick(callback);
      return true;
    }
    this.#fixHead();
    this.#record(chunk, encoding);
    // The response must be stored before it is sent, and nothing more of it can be recorded: store it now.
    if (this.#recording.storeBeforeSending && !this.#tape.isRecording && !this.#tape.isDiscarded) {
      this.#track(callback);
      this.#needsDrain = true;
      this.#store(this.#tape.breakOff());
      return false;
    }
    if (chunk.length === 0) this.#flushHeaders();
    // At most one piece: the client is one piece behind.
    const [piece] = this.#tape.sendable();
    if (piece !== undefined) {
      this.#beginSending();
      this.#needsDrain = !this.#interposition.call('write', piece, this.#track(callback));
      if (this.#needsDrain) this.#watchDrain();
    } else if (callback) process.nextTick(callback);
    return !this.#needsDrain;
  }

  #end(chunk: unknown, encoding: unknown, callback: Callback | undefined): ServerResponse {
    const response = this.#response;
    if (this.#isEnded) {
      if (callback) process.nextTick(callback, streamError('ERR_STREAM_ALREADY_FINISHED', 'end after end'));
      return response;
    }
    const isEmpty = chunk === undefined || chunk === null;
    if (!isEmpty && !isChunk(chunk)) return this.#interposition.call('end', chunk) as ServerResponse;
    this.#fixHead();
    if (!isEmpty && !this.#tape.isStored) this.#record(chunk as string | Uint8Array, encoding);
    this.#isEnded = true;
    this.#endCallback = callback;
    if (this.#tape.isStored) this.#restoreResponse();
    else this.#store(this.#tape.end());
    return response;
  }

  /** The connection is broken off at once, so that the client cannot take this for the end of the response. */
  #destroy(error: unknown): unknown {
    this.fail();
    return this.#restoreResponse(() => this.#breakOff(error));
  }

  /**
   * The connection is being destroyed without an error. finalhandler, of Express and Connect, does that for an error
   * that comes after its handler began to respond. Such a handler will not end its response, so this is its outcome. On
   * Bun a client that disconnects looks the same, and every such destroy is taken for a disconnect.
   * @returns true if the handler ended its response, and the destroy must wait until that is stored
   */
  #mustDestroyWait(): boolean {
    if (this.#interposition.isRemoved) return false;
    if (this.#isEnded) return true;
    const isByServer = process.versions.bun === undefined && !this.#response.req.socket.readableEnded;
    if (this.#head !== undefined && isByServer) this.fail();
    return false;
  }

  #emit(event: unknown, ...args: unknown[]): unknown {
    if (event === 'drain') this.#needsDrain = false;
    // HTTP/2 also emits `finish` for a response that was broken off, just before `close`.
    if ((event !== 'close' && event !== 'finish') || this.#tape.isStored)
      return this.#interposition.call('emit', event, ...args);
    // A stream that is piped into the response would stop at this event.
    this.#deferredEvents.push(event);
    this.#tape.discard();
    // Without its dead connection the response looks writable to frameworks, and it is.
    if (this.#response.socket) this.#response.detachSocket(this.#response.socket);
    this.#resumeHandler();
    return true;
  }

  /** Fixes the head through `writeHead`, so that middleware which replaced that method sees it. */
  #fixHead(): void {
    if (this.#head === undefined && !this.#tape.isStored) this.#response.writeHead(this.#response.statusCode);
  }

  /**
   * Records a copy, since a handler may reuse its buffer as soon as its callback runs. Node drops the body of a
   * response that cannot have one.
   */
  #record(chunk: string | Uint8Array, encoding: unknown): void {
    if (!this.#tape.hasBody) return;
    this.#tape.write(typeof chunk === 'string' ? Buffer.from(chunk, encoding as BufferEncoding) : Buffer.from(chunk));
  }

  #store(captured: CapturedResponse | undefined): void {
    if (captured === undefined) return;
    if (this.#head === undefined) this.#passage.settle({ status: captured.status });
    void this.#recording.store(captured).then((replacement) => this.#whenStored(replacement));
  }

  #whenStored(replacement: Reply | undefined): void {
    const hasClient = !this.#tape.isDiscarded;
    this.#tape.stored(replacement !== undefined);
    if (this.#interposition.isRemoved) return;
    try {
      if (!hasClient) this.#restoreResponse();
      else if (replacement !== undefined) this.#sendReplacement(replacement);
      else this.#sendRest();
    } catch (error) {
      // Node rejects a field or a reason. The handler cannot catch that any more.
      this.#restoreResponse(() => this.#breakOff(error));
    }
  }

  #sendRest(): void {
    const pieces = this.#tape.sendable();
    const last = this.#isEnded ? pieces.pop() : undefined;
    if (this.#head !== undefined) this.#beginSending();
    let hasRoom = true;
    for (const piece of pieces) hasRoom = this.#interposition.call('write', piece) === true;
    // The response is restored first: HTTP/2 writes the last piece by the response's own methods.
    this.#restoreResponse(
      () => this.#isEnded && this.#interposition.call('end', last ?? this.#endCallback, last && this.#endCallback),
    );
    if (hasRoom) this.#resumeHandler();
  }

  /** Another outcome counts. The client gets it, or nothing more if it already received a part of this response. */
  #sendReplacement({ status, headers, body }: Reply): void {
    const response = this.#response;
    if (this.#isHeadSent) return void this.#restoreResponse(() => this.#breakOff());
    this.#isHeadSent = true;
    for (const name of response.getHeaderNames()) response.removeHeader(name);
    if (!streamOf(response)) response.statusMessage = '';
    this.#interposition.call('writeHead', status, headers);
    // Not with `end` alone: HTTP/2 would write the body by the response's own methods, which ignore it by now.
    if (body.length > 0 && response.req.method !== 'HEAD') this.#interposition.call('write', body);
    this.#interposition.call('end', this.#endCallback);
    if (this.#isEnded) this.#restoreResponse();
    else this.#resumeHandler();
  }

  #beginSending(): void {
    if (this.#isHeadSent) return;
    this.#isHeadSent = true;
    // Node asks for the head itself, so that it can add the length of a short response.
    this.#interposition.restoreWriteHead();
    this.#head?.restore(this.#response);
  }

  /** HTTP/2 needs an error: without one its client would see a normal end. */
  #breakOff(error?: unknown): unknown {
    const response = this.#response;
    const reason =
      error ?? (streamOf(response) && streamError('ERR_STREAM_PREMATURE_CLOSE', 'the response is broken off'));
    return this.#interposition.call('destroy', reason);
  }

  /** Ends the capture: the response gets its own methods back. */
  #restoreResponse(last?: () => unknown): unknown {
    this.#interposition.remove();
    const result = last?.();
    this.#runPendingCallbacks();
    for (const event of this.#deferredEvents.splice(0)) this.#interposition.call('emit', event);
    this.#stopDeferringClose();
    this.#stopDeferringDestroy();
    return result;
  }

  /** Middleware in front of the gate may emit `drain` on its own stream instead of on the response. */
  #watchDrain(): void {
    if (this.#watchesDrain) return;
    this.#watchesDrain = true;
    this.#interposition.call('on', 'drain', () => {
      if (this.#needsDrain) this.#emit('drain');
    });
  }

  /** The handler need not wait any more. */
  #resumeHandler(): void {
    this.#runPendingCallbacks();
    if (this.#needsDrain) this.#response.emit('drain');
  }

  /** @returns what to pass to the real write; runs the handler's callback once */
  #track(callback: Callback | undefined): Callback | undefined {
    if (callback === undefined) return undefined;
    const once: Callback = (error) => {
      // If the client disconnected, the response is stored all the same: the handler gets no error.
      if (this.#pendingCallbacks.delete(once)) callback(this.#tape.isDiscarded ? undefined : error);
    };
    this.#pendingCallbacks.add(once);
    return once;
  }

  #runPendingCallbacks(): void {
    for (const callback of [...this.#pendingCallbacks]) process.nextTick(callback);
  }
}
