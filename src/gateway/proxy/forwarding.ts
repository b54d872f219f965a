import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Passage } from '../../gate/gate.ts';
import type { CapturedResponse, Recording } from '../../gate/recording.ts';
import { isBodyError } from '../../http/body-error.ts';
import { problemReply, type Reply } from '../../http/problem.ts';
import type { HeaderFields } from '../../http/rate-limit-fields.ts';
import { BodyMeter } from '../body/meter.ts';
import { hasBody, refuseExchange, sendReply } from '../exchange/answers.ts';
import { type Exchange, freeIfDone, isOpen } from '../exchange/exchange.ts';
import { type Refusal, refuse, refuseBody } from '../exchange/refusal.ts';
import { type AnswerSink, DiscardedAnswer, StreamedAnswer } from './answer-sink.ts';
import { StoredAnswer } from './stored-answer.ts';
import { answerFields } from './upstream-fields.ts';

/** How long the rest of a discarded response may take before its connection is closed. */
const DISCARD_MS = 2_000;

const UPSTREAM_TIMEOUT = refuse(504, 'errors/request_timeout', 'The upstream did not respond in time.');
const BODY_TIMEOUT = refuse(408, 'errors/request_timeout', 'The rest of the request body did not arrive in time.');
const PROVIDER_LIMIT = refuse(429, 'provider/too_many_requests', "The provider's own rate limit is reached.");

/** What a forwarding needs besides the exchange. */
export interface ForwardingOptions {
  /** Longest wait for the head of the response, in milliseconds. */
  readonly timeoutMs: number;
  readonly maxBodyBytes: number;
  /** Called for each head that arrives, with the seconds that it took. */
  readonly onHead: (exchange: Exchange, seconds: number) => void;
}

/**
 * Forwards one request to the upstream and its response to the client. Both are streamed, and each side is read only as
 * fast as the other side takes the data. undici calls the handler methods and never sends the request again. If the
 * response is stored for retries, the forwarding continues when the client disconnects.
 */
export class Forwarding implements Dispatcher.DispatchHandler {
  /** For undici: the body of the request; null if it has none. */
  readonly body: Readable | null;
  readonly #exchange: Exchange;
  readonly #passage: Passage;
  readonly #options: ForwardingOptions;
  readonly #recording: Recording | undefined;
  #sink: AnswerSink;
  #controller: Dispatcher.DispatchController | undefined;
  /** undici had a connection, so the upstream may have received something. From here on the charge is not refunded. */
  #isSent = false;
  /** Nothing more is sent to or read from the upstream. */
  #isFinished = false;
  /** Status of the upstream's response, once its head has arrived. */
  #status: number | undefined;
  /** The client got a 504, and the forwarding continues. */
  #hasTimedOut = false;
  #abandoned: Promise<Reply | undefined> | undefined;
  readonly #startedAt = performance.now();
  #timer: NodeJS.Timeout;

  constructor(exchange: Exchange, passage: Passage, options: ForwardingOptions) {
    this.#exchange = exchange;
    this.#passage = passage;
    this.#options = options;
    this.#recording = passage.recording;
    this.#sink = passage.recording ? new StoredAnswer(exchange, passage.recording) : new StreamedAnswer(exchange);
    this.#sink.onReady = () => this.#controller?.resume();
    this.#timer = setTimeout(() => this.#onTimeout(), options.timeoutMs);
    exchange.forwarding = true;
    const { response } = exchange;
    if (this.#recording === undefined) {
      exchange.release = () => this.#stop();
      response.once('close', () => {
        // If the gateway's own answer was sent in full, a response of the upstream may still be discarded.
        if (!response.writableFinished) this.#stop();
      });
    }
    this.body = this.#openBody();
    this.body?.on('error', (error) => this.#fail(error));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isFinished) controller.abort(new Error('given up before it was sent'));
    else this.#isSent = true;
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    _headers: unknown,
    statusMessage?: string,
  ): void {
    // Informational responses (100 to 199) are for the gateway, not for the client.
    if (status < 200 || this.#isFinished) return;
    if (!this.#hasTimedOut) clearTimeout(this.#timer);
    this.#status = status;
    const exchange = this.#exchange;
    this.#options.onHead(exchange, (performance.now() - this.#startedAt) / 1_000);
    const { headers, stripRateLimit } = this.#passage.settle({ status });
    if (stripRateLimit) {
      this.#discardAnswer();
      this.#refuse(PROVIDER_LIMIT, headers);
      return;
    }
    if (this.#recording === undefined && !isOpen(exchange)) {
      this.#stop();
      return;
    }
    const raw = (controller.rawHeaders as Buffer[]).map((field) => field.toString('latin1'));
    const { decision } = this.#passage;
    const isLimited = decision !== undefined && (decision.degraded || decision.shown !== undefined);
    const fields = answerFields(raw, { status, id: exchange.id, gateFields: headers, isLimited });
    const reason = /^[\x20-\x7e]+$/.test(statusMessage ?? '') ? statusMessage : undefined;
    this.#sink.head({ status, reason, fields });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#sink.data(chunk)) controller.pause();
  }

  onResponseEnd(): void {
    this.#finish();
    this.#sink.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#fail(error);
  }

  /** The body that the gateway has read already, or else the client's, as it arrives. */
  #openBody(): Readable | null {
    const { body, request, response, expectsContinue } = this.#exchange;
    if (body !== undefined) return body.size === 0 ? null : body.open();
    if (!hasBody(request.headers)) return null;
    const meter = new BodyMeter(this.#options.maxBodyBytes, () => this.#timer.refresh());
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
    else if (this.#recording !== undefined && this.#isSent) this.#continueWithoutClient(this.#recording);
    else this.#giveUp(UPSTREAM_TIMEOUT);
  }

  /** The client gets a 504, but the operation continues. If a response still arrives, retries get it. */
  #continueWithoutClient(recording: Recording): void {
    const problem = UPSTREAM_TIMEOUT.problem(this.#exchange.id);
    this.#hasTimedOut = true;
    sendReply(this.#exchange, problemReply(problem, this.#passage.settle({ status: 504 }).headers));
    const { lateAnswerMs = 0 } = this.#exchange.route?.idempotent ?? {};
    this.#timer = setTimeout(() => {
      this.#stop();
      if (this.#status === undefined) void recording.store(capturedFrom(problemReply(problem)));
      else this.#sink.breakOff();
    }, lateAnswerMs);
  }

  /** The rest of the upstream's response is discarded, within bounds, so that its connection can be used again. */
  #discardAnswer(): void {
    this.#sink = new DiscardedAnswer(() => this.#stop());
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#stop(), DISCARD_MS).unref();
  }

  #fail(error: Error & { code?: string }): void {
    // These have no body, whatever length they state (RFC 9110, section 8.6). undici reports the missing body as an
    // error.
    if (error.code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH' && (this.#status === 204 || this.#status === 304)) {
      this.onResponseEnd();
      return;
    }
    if (this.#isFinished) return;
    if (this.#status !== undefined || (this.#recording === undefined && this.#exchange.answered)) {
      this.#stop();
      this.#sink.breakOff();
    } else this.#giveUp(this.#refusalFor(error));
  }

  #refusalFor(error: Error & { code?: string }): Refusal {
    if (isBodyError(error, 'too_large')) return refuseBody(error);
    if (error.code === 'UND_ERR_INVALID_ARG') {
      const detail = 'The request cannot be forwarded: its target or one of its header fields is not valid.';
      return refuse(400, 'errors/malformed_request', detail);
    }
    const detail = this.#isSent
      ? 'The upstream closed the connection before it responded. It may have received the request.'
      : 'The upstream cannot be reached. It did not receive the request.';
    return refuse(503, 'errors/network_down', detail);
  }

  /** Stops, and answers with an error instead of the upstream's response. */
  #giveUp(refusal: Refusal): void {
    this.#stop();
    // Headers show what was charged. A charge that was refunded is not shown.
    const headers = this.#isSent ? this.#passage.settle({ status: refusal.status }).headers : this.#passage.marks;
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
    this.body?.destroy();
    this.#controller?.abort(new Error('given up'));
  }

  #finish(): void {
    this.#isFinished = true;
    clearTimeout(this.#timer);
    this.#exchange.release = undefined;
    void this.#exchange.body?.dispose();
    this.#exchange.forwarding = false;
    freeIfDone(this.#exchange);
  }
}

/** An error answer of the gateway, as it is stored. */
function capturedFrom({ status, headers, body }: Reply): CapturedResponse {
  return { status, fields: Object.entries(headers).flat(2), body: Buffer.from(body) };
}
