import type { Dispatcher } from 'undici';
import type { Passage } from '../gate/exchange.ts';
import { tooLarge } from './admission.ts';
import { discardBody, hasBody, refuseExchange } from './answers.ts';
import { BodyMeter, BodyTooLargeError } from './body-meter.ts';
import { type Exchange, isOpen } from './exchange.ts';
import { type Refusal, refuse } from './refusal.ts';
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
 * other one takes it. Told by undici, never sent again.
 */
export class Forwarding implements Dispatcher.DispatchHandler {
  /** For undici; null where the request has none. */
  readonly body: BodyMeter | null;
  #controller: Dispatcher.DispatchController | undefined;
  /** The connection was there, so that the upstream may have got something: from here on the charge stays. */
  #sent = false;
  #settled = false;
  #discarded: number | undefined;
  #refunded: Promise<unknown> | undefined;
  readonly #startedAt = performance.now();
  #timer: NodeJS.Timeout;

  constructor(
    private readonly exchange: Exchange,
    private readonly passage: Passage,
    private readonly options: ForwardingOptions,
  ) {
    const { request, response } = exchange;
    this.#timer = setTimeout(() => this.#late(), options.timeoutMs);
    exchange.release = () => this.#stop();
    response.once('close', () => {
      // A finished answer of ours may leave something of the upstream's to be discarded.
      if (!response.writableFinished) this.#stop();
    });
    response.on('drain', () => this.#controller?.resume());
    this.body = hasBody(request.headers) ? new BodyMeter(options.maxBodyBytes, () => this.#timer.refresh()) : null;
    if (this.body === null) return;
    this.body.on('error', (error) => this.#fail(error));
    request.pipe(this.body);
    if (exchange.expectsContinue) response.writeContinue();
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
    clearTimeout(this.#timer);
    const { exchange, passage, options } = this;
    options.onHead(exchange, (performance.now() - this.#startedAt) / 1_000);
    const { headers, stripRateLimit } = passage.settle({ status });
    if (stripRateLimit) {
      this.#discarded = 0;
      this.#timer = setTimeout(() => this.#stop(), DISCARD_MS).unref();
      this.#answer(refuse(429, 'provider/too_many_requests', "The provider's own rate limit is reached."));
      return;
    }
    if (!isOpen(exchange)) {
      this.#stop();
      return;
    }
    const received = (controller.rawHeaders as Buffer[]).map((field) => field.toString('latin1'));
    // Must not stand on a 204 (RFC 9110, section 8.6).
    const raw = status === 204 ? without('content-length', received) : received;
    const { decision } = passage;
    const isLimited = decision !== undefined && (decision.degraded || decision.shown !== undefined);
    const fields = answerFields(raw, exchange.id, headers, isLimited);
    const reason = /^[\x20-\x7e]+$/.test(statusMessage ?? '') ? statusMessage : undefined;
    exchange.response.writeHead(status, reason, fields);
    exchange.answered = true;
    // The head of an answer that takes its time must not wait for its body; one write for both where they come together.
    setImmediate(() => {
      if (!exchange.response.writableEnded && !exchange.response.destroyed) exchange.response.flushHeaders();
    });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#discarded !== undefined) {
      this.#discarded += chunk.length;
      if (this.#discarded > MOST_DISCARDED) controller.abort(new Error('enough discarded'));
    } else if (!this.exchange.response.write(chunk)) controller.pause();
  }

  onResponseEnd(): void {
    this.#settle();
    if (this.#discarded !== undefined) return;
    this.exchange.response.end();
    discardBody(this.exchange);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#fail(error);
  }

  #late(): void {
    const { request } = this.exchange;
    const isClientsFault = this.#sent && this.body !== null && !request.complete && !this.body.writableNeedDrain;
    const refusal = isClientsFault
      ? refuse(408, 'errors/request_timeout', 'The rest of the body did not come in time.')
      : refuse(504, 'errors/request_timeout', 'The upstream did not answer in time.');
    this.#giveUp(refusal);
  }

  #fail(error: Error & { code?: string }): void {
    // These have no body, whatever length they state (RFC 9110, section 8.6): undici takes the stated length for a missing body.
    if (error.code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH' && BODYLESS.includes(this.exchange.response.statusCode)) {
      this.onResponseEnd();
      return;
    }
    if (this.#settled || this.#discarded !== undefined) {
      this.#stop();
      return;
    }
    if (this.exchange.answered) {
      this.#stop();
      this.#breakOff();
    } else if (error instanceof BodyTooLargeError) this.#giveUp(tooLarge(this.options.maxBodyBytes));
    else if (error.code === 'UND_ERR_INVALID_ARG') {
      this.#giveUp(refuse(400, 'errors/malformed_request', 'The request cannot be forwarded.'));
    } else {
      const detail = this.#sent
        ? 'The upstream broke the connection before it answered; it may have got the request.'
        : 'The upstream cannot be reached; it did not get the request.';
      this.#giveUp(refuse(503, 'errors/network_down', detail));
    }
  }

  /** An answer of ours instead of the upstream's; the charge goes back first where nothing was sent. */
  #giveUp(refusal: Refusal): void {
    this.#stop();
    if (this.#refunded === undefined) this.#answer(refusal);
    else void this.#refunded.then(() => this.#answer(refusal));
  }

  #answer(refusal: Refusal): void {
    this.exchange.release = undefined;
    refuseExchange(this.exchange, refusal);
  }

  /** No more to and from the upstream. Where nothing was sent, the charge goes back; harmless where it was settled. */
  #stop(): void {
    if (this.#settled) return;
    this.#settle();
    if (!this.#sent) this.#refunded = this.passage.abandon();
    if (this.body !== null) {
      this.exchange.request.unpipe(this.body);
      this.body.destroy();
    }
    this.#controller?.abort(new Error('given up'));
  }

  #settle(): void {
    this.#settled = true;
    clearTimeout(this.#timer);
    this.exchange.release = undefined;
  }

  /** The client must not take half an answer for a whole one; where only the end of the connection ends it, that takes a reset. */
  #breakOff(): void {
    const { request, response } = this.exchange;
    if (request.httpVersion === '1.0') response.socket?.resetAndDestroy();
    response.destroy();
  }
}

/** Names and values in one flat list, less those of one name. */
function without(name: string, raw: readonly string[]): string[] {
  return raw.filter((_, i) => raw[i - (i % 2)]?.toLowerCase() !== name);
}
