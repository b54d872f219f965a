import { Readable } from 'node:stream';
import type { Passage, ResponseRecording } from 'headgate/gate';
import type { HeaderFields } from 'headgate/http';
import { problemReply, type Reply } from 'headgate/http';
import { BodyMeter } from '../body/meter.ts';
import { hasBody, refuseExchange, sendReply } from '../exchange/answers.ts';
import { type Exchange, freeIfDone, isOpen } from '../exchange/exchange.ts';
import type { Refusal } from '../exchange/refusal.ts';
import type { UpstreamSpan } from '../exchange/request-trace.ts';
import type { UpstreamCause, UpstreamFailure } from '../exchange/upstream-failure.ts';
import { type AnswerSink, DiscardedAnswer, StreamedAnswer } from './answer-sink.ts';
import type { ConnectionPool } from './connection-pool.ts';
import { fieldReader, providerFields } from './provider-fields.ts';
import type { ResponseHead } from './response-reader.ts';
import { capturedFrom, StoredAnswer } from './stored-answer.ts';
import { causeOf } from './upstream-cause.ts';
import { answerFields } from './upstream-fields.ts';
import {
  BODY_TIMEOUT,
  isUpstreamError,
  MALFORMED,
  PROVIDER_LIMIT,
  refusalOf,
  UPSTREAM_BUSY,
  UPSTREAM_TIMEOUT,
} from './upstream-refusals.ts';
import { inContext, type RequestMessage, type UpstreamListener, UpstreamRequest } from './upstream-request.ts';

/** How long the rest of a discarded response may take before its connection is closed. */
const DISCARD_MS = 2_000;

/** Options of a forwarding besides the exchange. */
export interface ForwardingOptions {
  /** Longest wait for the head of the response, in milliseconds. */
  readonly timeoutMs: number;
  /** Longest time from the head of the response to its end, in milliseconds. */
  readonly answerMs: number;
  readonly maxBodyBytes: number;
  /** Called for each head that arrives, with the seconds that it took. */
  readonly onHead: (exchange: Exchange, seconds: number) => void;
  /** Called if the upstream does not respond, or not in full: at most once per request. */
  readonly onFailure: (exchange: Exchange, failure: UpstreamFailure) => void;
}

/**
 * Forwards one request to the upstream and its response to the client. Both are streamed, and each side is read only as
 * fast as the other side takes the data. The request is sent once. If the response is stored for retries, the
 * forwarding continues when the client disconnects, for as long as more of the response can be stored.
 */
export class Forwarding implements UpstreamListener {
  /** The body of the request; null if there is none. */
  readonly body: Readable | Uint8Array | null;
  /** Undefined if nothing is traced. */
  readonly span: UpstreamSpan | undefined;
  readonly #exchange: Exchange;
  readonly #passage: Passage;
  readonly #options: ForwardingOptions;
  readonly #upstream: string;
  readonly #recording: ResponseRecording | undefined;
  #sink: AnswerSink;
  #request: UpstreamRequest | undefined;
  /** The upstream may have received something. From here on the charge is not refunded. */
  #isSent = false;
  /** Nothing more is sent to or read from the upstream. */
  #isFinished = false;
  /** Status of the upstream's response, once its head arrived. */
  #status: number | undefined;
  /** The rest of the response gets a time limit if it does not come with its head. */
  #needsAnswerTimer = false;
  /** The client got a 504, and the forwarding continues. */
  #hasTimedOut = false;
  #abandoned: Promise<Reply | undefined> | undefined;
  readonly #startedAt = performance.now();
  #timer: NodeJS.Timeout;

  /** @param upstream its host and port, for the report of a failure */
  constructor(exchange: Exchange, passage: Passage, options: ForwardingOptions, upstream: string) {
    this.#exchange = exchange;
    this.#passage = passage;
    this.#options = options;
    this.#upstream = upstream;
    this.#recording = passage.recording;
    this.span = exchange.trace?.startUpstream(exchange.request.method ?? '', upstream);
    this.#sink = passage.recording ? new StoredAnswer(exchange, passage.recording) : new StreamedAnswer(exchange);
    this.#sink.onReady = () => this.#request?.resume();
    this.#timer = setTimeout(() => this.#onTimeout(), options.timeoutMs);
    exchange.forwarding = true;
    const { response } = exchange;
    if (this.#recording === undefined) exchange.release = () => this.#stop();
    exchange.onClosed = () => {
      if (!this.#isSent) this.#stop();
      else if (this.#recording !== undefined) this.#stopIfUnneeded();
      // If the gateway's own answer was sent in full, a response of the upstream may still be discarded.
      else if (!response.writableFinished) this.#stop();
    };
    this.body = this.#openBody();
    if (this.body instanceof Readable) this.body.on('error', (error) => this.#fail(error));
  }

  /**
   * Sends the request when the pool gives it a connection. Call it once.
   * @param message undefined if the request cannot be sent, because its target or a field is not valid
   */
  send(pool: ConnectionPool, message: RequestMessage | undefined): void {
    if (message === undefined) {
      this.#giveUp(MALFORMED);
      return;
    }
    const { application = '', idempotent } = this.#exchange;
    const applicant = { application, needsFresh: idempotent !== undefined };
    this.#request = new UpstreamRequest(message, pool, applicant, inContext(this.#exchange.trace, this));
    this.#request.send();
  }

  /** @internal For {@link UpstreamRequest}. */
  onSend(): void {
    this.#isSent = true;
    // Not before: a request that never gets a connection is refunded, so nothing else charges for its body.
    this.#exchange.bodyWork?.giveBack();
  }

  /** @internal For {@link UpstreamRequest}. */
  onUnsent(): void {
    if (!this.#isFinished) this.#isSent = false;
  }

  /** @internal For {@link UpstreamRequest}. */
  onError(error: Error): void {
    this.#fail(error);
  }

  /** @internal For {@link UpstreamRequest}. */
  onHead({ status, reason, fields: rawFields }: ResponseHead): void {
    if (this.#isFinished) return;
    if (!this.#hasTimedOut) clearTimeout(this.#timer);
    this.#status = status;
    this.span?.onStatus(status);
    const exchange = this.#exchange;
    this.#options.onHead(exchange, (performance.now() - this.#startedAt) / 1_000);
    const { headers, stripRateLimit, cooling } = this.#passage.settle({ status, header: fieldReader(rawFields) });
    if (stripRateLimit) {
      this.#discardAnswer();
      const fields = { ...providerFields(rawFields), ...headers };
      // A client that has the answer finds its account paused in every process.
      if (cooling === undefined) this.#refuse(PROVIDER_LIMIT, fields);
      else void cooling.then(() => this.#refuse(PROVIDER_LIMIT, fields));
      return;
    }
    if (this.#recording === undefined && !isOpen(exchange)) {
      this.#stop();
      return;
    }
    this.#needsAnswerTimer = !this.#hasTimedOut;
    const { decision } = this.#passage;
    // A 429 that is passed on is about the provider's limits.
    const isLimited = status !== 429 && decision !== undefined && (decision.degraded || decision.shown !== undefined);
    const fields = answerFields(rawFields, { status, id: exchange.id, gateFields: headers, isLimited });
    this.#sink.head({ status, reason: /^[\x20-\x7e]+$/.test(reason) ? reason : undefined, fields });
  }

  /** @internal For {@link UpstreamRequest}. */
  onData(chunk: Buffer): void {
    if (this.#isFinished) return;
    if (!this.#sink.data(chunk)) this.#request?.pause();
    this.#stopIfUnneeded();
  }

  /** @internal For {@link UpstreamRequest}. */
  onMore(): void {
    if (this.#isFinished || this.#status === undefined) return;
    if (this.#needsAnswerTimer) this.#timer = setTimeout(() => this.#onAnswerTimeout(), this.#options.answerMs);
    this.#needsAnswerTimer = false;
    if (!this.#sink.flush()) this.#request?.pause();
  }

  /** @internal For {@link UpstreamRequest}. */
  onEnd(): void {
    if (this.#isFinished) return;
    this.#finish();
    this.#sink.end();
  }

  /** Reads no further if the rest of the response can reach neither the client nor its retries. */
  #stopIfUnneeded(): void {
    if (this.#status !== undefined && !this.#sink.isNeeded) this.#stop();
  }

  /** The body that the gateway already read, or else the client's, as it arrives. */
  #openBody(): Readable | Uint8Array | null {
    const { body, request, response, expectsContinue } = this.#exchange;
    if (body !== undefined) return body.size === 0 ? null : (body.bytes ?? body.open());
    if (!hasBody(request.headers)) return null;
    const meter = new BodyMeter(this.#options.maxBodyBytes, () => {
      // From the head of the response on, the timer is for the rest of the response.
      if (this.#status === undefined && !this.#isFinished) this.#timer.refresh();
    });
    request.pipe(meter);
    if (expectsContinue) response.writeContinue();
    return meter;
  }

  #onTimeout(): void {
    const { body, request } = this.#exchange;
    const waitsForClient =
      this.#isSent &&
      body === undefined &&
      this.body instanceof BodyMeter &&
      !request.complete &&
      !this.body.writableNeedDrain;
    if (waitsForClient) this.#giveUp(BODY_TIMEOUT);
    else if (this.#request?.isWaiting === true) this.#giveUp(UPSTREAM_BUSY);
    else {
      this.#report('timeout');
      if (this.#recording !== undefined && this.#isSent) this.#continueWithoutClient(this.#recording);
      else this.#giveUp(UPSTREAM_TIMEOUT);
    }
  }

  #onAnswerTimeout(): void {
    this.#report('timeout');
    this.#breakOff();
  }

  /** The client gets a 504, but the operation continues. If a response still arrives, retries get it. */
  #continueWithoutClient(recording: ResponseRecording): void {
    const problem = UPSTREAM_TIMEOUT.problem(this.#exchange.id);
    this.#hasTimedOut = true;
    sendReply(this.#exchange, problemReply(problem, this.#passage.settle({ status: 504, unanswered: true }).headers));
    const { lateAnswerMs = 0 } = this.#exchange.route?.idempotent ?? {};
    this.#timer = setTimeout(() => {
      if (this.#status !== undefined) this.#breakOff();
      else {
        this.#stop();
        void recording.store(capturedFrom(problemReply(problem)));
      }
    }, lateAnswerMs);
  }

  /** The response did not end in time, or its connection broke. */
  #breakOff(): void {
    this.#stop();
    this.#sink.breakOff();
  }

  /** The rest of the upstream's response is discarded, within bounds, so that its connection can be used again. */
  #discardAnswer(): void {
    this.#sink = new DiscardedAnswer(() => this.#stop());
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#stop(), DISCARD_MS).unref();
  }

  #fail(error: Error): void {
    if (this.#isFinished) return;
    if (isUpstreamError(error)) this.#report(causeOf(error), error.code);
    if (this.#status !== undefined || (this.#recording === undefined && this.#exchange.answered)) this.#breakOff();
    else this.#giveUp(refusalOf(error, this.#isSent));
  }

  /** Reports why the upstream did not respond, or not in full. */
  #report(cause: UpstreamCause, code?: string): void {
    const exchange = this.#exchange;
    // The rest of a discarded response does not matter. After a 504, the connection may break as well.
    if (this.#sink instanceof DiscardedAnswer || exchange.upstreamCause !== undefined) return;
    exchange.upstreamCause = cause;
    this.span?.fail(cause);
    this.#options.onFailure(exchange, { upstream: this.#upstream, cause, code, isSent: this.#isSent });
  }

  /** Stops, and answers with an error instead of the upstream's response. */
  #giveUp(refusal: Refusal): void {
    this.#stop();
    // Headers show the charge, unless it was refunded.
    const { status } = refusal;
    const headers = this.#isSent ? this.#passage.settle({ status, unanswered: true }).headers : this.#passage.marks;
    this.#refuse(refusal, headers);
  }

  /** Answers with an error after the outcome of the key is known: released if nothing was sent, otherwise stored. */
  #refuse(refusal: Refusal, headers: HeaderFields | undefined): void {
    this.#exchange.release = undefined;
    const outcome =
      this.#abandoned ?? this.#recording?.store(capturedFrom(problemReply(refusal.problem(this.#exchange.id))));
    if (outcome === undefined) refuseExchange(this.#exchange, refusal, { headers });
    else {
      void outcome.then((instead) => {
        if (instead === undefined) refuseExchange(this.#exchange, refusal, { headers });
        else sendReply(this.#exchange, instead);
      });
    }
  }

  /** Ends the exchange with the upstream. If nothing was sent, the charge is refunded and the key is released. */
  #stop(): void {
    if (this.#isFinished) return;
    this.#finish();
    if (!this.#isSent) this.#abandoned = this.#passage.abandon();
    if (this.body instanceof BodyMeter) this.#exchange.request.unpipe(this.body);
    if (this.body instanceof Readable) this.body.destroy();
    this.#request?.destroy();
  }

  #finish(): void {
    this.#isFinished = true;
    clearTimeout(this.#timer);
    this.span?.end();
    // The upstream works on this request no more.
    void this.#passage.end?.();
    this.#exchange.release = undefined;
    void this.#exchange.body?.dispose();
    this.#exchange.forwarding = false;
    freeIfDone(this.#exchange);
  }
}
