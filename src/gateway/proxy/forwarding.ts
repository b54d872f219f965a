import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Passage } from '../../gate/gate.ts';
import type { CapturedResponse, Recording } from '../../gate/recording.ts';
import { isBodyError } from '../../http/body-error.ts';
import { problemReply, type Reply } from '../../http/problem.ts';
import type { HeaderFields } from '../../http/rate-limit-fields.ts';
import { BodyMeter } from '../body/meter.ts';
import { hasBody, refuseExchange, sendReply } from '../exchange/answers.ts';
import { type Exchange, isOpen } from '../exchange/exchange.ts';
import { type Refusal, refuse, refuseBody } from '../exchange/refusal.ts';
import { type AnswerSink, StreamedAnswer } from './answer-sink.ts';
import { StoredAnswer } from './stored-answer.ts';
import { answerFields } from './upstream-fields.ts';

/** Most of a body that is read only to be thrown away, in bytes. */
const MOST_DISCARDED = 65_536;
const DISCARD_MS = 2_000;

const BODYLESS: readonly number[] = [204, 304];

/** What a forwarding needs to know besides the exchange. */
export interface ForwardingOptions {
  /** Longest wait for the head of the answer, in milliseconds. */
  readonly timeoutMs: number;
  readonly maxBodyBytes: number;
  /** Hears of each head that came, with the seconds that it took. */
  readonly onHead: (exchange: Exchange, seconds: number) => void;
}

/**
 * One request on its way to the upstream and the answer on its way back, streamed both ways: each side is read only as fast as the
 * other one takes it. Told by undici, never sent again. Where the outcome is kept, it goes on to its end whatever becomes of the client.
 */
export class Forwarding implements Dispatcher.DispatchHandler {
  /** For undici; null where the request has none. */
  readonly body: Readable | null;
  readonly #exchange: Exchange;
  readonly #passage: Passage;
  readonly #options: ForwardingOptions;
  readonly #recording: Recording | undefined;
  readonly #sink: AnswerSink;
  #controller: Dispatcher.DispatchController | undefined;
  /** The connection was there, so that the upstream may have got something: from here on the charge stays. */
  #sent = false;
  #settled = false;
  /** Of the upstream's answer, once its head has come. */
  #status: number | undefined;
  /** The client was told that the upstream did not answer in time. */
  #isLate = false;
  #discarded: number | undefined;
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
    this.#timer = setTimeout(() => this.#late(), options.timeoutMs);
    exchange.forwarding = true;
    const { response } = exchange;
    if (this.#recording === undefined) {
      exchange.release = () => this.#stop();
      response.once('close', () => {
        // A finished answer of ours may leave something of the upstream's to be discarded.
        if (!response.writableFinished) this.#stop();
      });
    }
    this.body = this.#openBody();
    this.body?.on('error', (error) => this.#fail(error));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#settled) controller.abort(new Error('given up before it was sent'));
    else this.#sent = true;
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    _headers: unknown,
    statusMessage?: string,
  ): void {
    // Informational answers (100 to 199) concern the connection to the upstream.
    if (status < 200 || this.#settled) return;
    if (!this.#isLate) clearTimeout(this.#timer);
    this.#status = status;
    const exchange = this.#exchange;
    this.#options.onHead(exchange, (performance.now() - this.#startedAt) / 1_000);
    const { headers, stripRateLimit } = this.#passage.settle({ status });
    if (stripRateLimit) {
      this.#discarded = 0;
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#stop(), DISCARD_MS).unref();
      this.#answer(refuse(429, 'provider/too_many_requests', "The provider's own rate limit is reached."), headers);
      return;
    }
    if (this.#recording === undefined && !isOpen(exchange)) {
      this.#stop();
      return;
    }
    const received = (controller.rawHeaders as Buffer[]).map((field) => field.toString('latin1'));
    // Must not stand on a 204 (RFC 9110, section 8.6).
    const raw = status === 204 ? without('content-length', received) : received;
    const { decision } = this.#passage;
    const isLimited = decision !== undefined && (decision.degraded || decision.shown !== undefined);
    const fields = answerFields(raw, exchange, headers, isLimited);
    const reason = /^[\x20-\x7e]+$/.test(statusMessage ?? '') ? statusMessage : undefined;
    this.#sink.head({ status, reason, fields });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#discarded !== undefined) {
      this.#discarded += chunk.length;
      if (this.#discarded > MOST_DISCARDED) controller.abort(new Error('enough discarded'));
    } else if (!this.#sink.data(chunk)) controller.pause();
  }

  onResponseEnd(): void {
    this.#settle();
    if (this.#discarded === undefined) this.#sink.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#fail(error);
  }

  /** The body that was read before, or the client's own as it comes. */
  #openBody(): Readable | null {
    const { body, request, response, expectsContinue } = this.#exchange;
    if (body !== undefined) return body.size === 0 ? null : body.open();
    if (!hasBody(request.headers)) return null;
    const meter = new BodyMeter(this.#options.maxBodyBytes, () => this.#timer.refresh());
    request.pipe(meter);
    if (expectsContinue) response.writeContinue();
    return meter;
  }

  #late(): void {
    const { body, request } = this.#exchange;
    const isClientsFault =
      this.#sent &&
      body === undefined &&
      this.body instanceof BodyMeter &&
      !request.complete &&
      !this.body.writableNeedDrain;
    if (isClientsFault)
      this.#giveUp(refuse(408, 'errors/request_timeout', 'The rest of the body did not come in time.'));
    else if (this.#recording !== undefined && this.#sent) this.#goOnLate(this.#recording);
    else this.#giveUp(TOO_LATE);
  }

  /** The client is answered 504, but the operation goes on: an answer that comes after all is the outcome that retries get. */
  #goOnLate(recording: Recording): void {
    const problem = TOO_LATE.problem(this.#exchange.id);
    this.#isLate = true;
    sendReply(this.#exchange, problemReply(problem, this.#passage.settle({ status: 504 }).headers));
    const { lateAnswerMs = 0 } = this.#exchange.route?.idempotent ?? {};
    this.#timer = setTimeout(() => {
      this.#stop();
      if (this.#status === undefined) void recording.store(captured(problemReply(problem)));
      else this.#sink.breakOff();
    }, lateAnswerMs);
  }

  #fail(error: Error & { code?: string }): void {
    // These have no body, whatever length they state (RFC 9110, section 8.6): undici takes the stated length for a missing body.
    if (error.code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH' && BODYLESS.includes(this.#status ?? 0)) {
      this.onResponseEnd();
      return;
    }
    if (this.#settled || this.#discarded !== undefined) {
      this.#stop();
      return;
    }
    if (this.#status !== undefined || (this.#recording === undefined && this.#exchange.answered)) {
      this.#stop();
      this.#sink.breakOff();
    } else if (isBodyError(error, 'too_large')) this.#giveUp(refuseBody(error));
    else if (error.code === 'UND_ERR_INVALID_ARG') {
      this.#giveUp(refuse(400, 'errors/malformed_request', 'The request cannot be forwarded.'));
    } else {
      const detail = this.#sent
        ? 'The upstream broke the connection before it answered; it may have got the request.'
        : 'The upstream cannot be reached; it did not get the request.';
      this.#giveUp(refuse(503, 'errors/network_down', detail));
    }
  }

  /** An answer of ours instead of the upstream's. */
  #giveUp(refusal: Refusal): void {
    this.#stop();
    // What was charged is shown, whoever answers; what was given back is not.
    const headers = this.#sent ? this.#passage.settle({ status: refusal.status }).headers : this.#passage.marks;
    this.#answer(refusal, headers);
  }

  /** Answers once it is settled what becomes of charge and key: given back where nothing was sent, kept otherwise. */
  #answer(refusal: Refusal, headers: HeaderFields | undefined): void {
    this.#exchange.release = undefined;
    const isKept = this.#recording !== undefined && this.#abandoned === undefined;
    const settled = isKept
      ? this.#recording?.store(captured(problemReply(refusal.problem(this.#exchange.id))))
      : this.#abandoned;
    if (settled === undefined) refuseExchange(this.#exchange, refusal, { headers });
    else {
      void settled.then((instead) => {
        if (instead === undefined) refuseExchange(this.#exchange, refusal, { headers });
        else sendReply(this.#exchange, instead);
      });
    }
  }

  /** No more to and from the upstream. Where nothing was sent, charge and key go back; harmless where that was settled. */
  #stop(): void {
    if (this.#settled) return;
    this.#settle();
    if (!this.#sent) this.#abandoned = this.#passage.abandon();
    if (this.body instanceof BodyMeter) this.#exchange.request.unpipe(this.body);
    this.body?.destroy();
    this.#controller?.abort(new Error('given up'));
  }

  #settle(): void {
    this.#settled = true;
    clearTimeout(this.#timer);
    this.#exchange.release = undefined;
    void this.#exchange.body?.dispose();
  }
}

const TOO_LATE = refuse(504, 'errors/request_timeout', 'The upstream did not answer in time.');

/** An answer of ours as it is kept. */
function captured({ status, headers, body }: Reply): CapturedResponse {
  return { status, fields: Object.entries(headers).flat(2), body: Buffer.from(body) };
}

/** Names and values in one flat list, less those of one name. */
function without(name: string, raw: readonly string[]): string[] {
  return raw.filter((_, i) => raw[i - (i % 2)]?.toLowerCase() !== name);
}
