import type { OutgoingMessage, ServerResponse } from 'node:http';
import { PieceList } from 'headgate/internal';
import { discardBody } from '../exchange/answers.ts';
import { withCors } from '../exchange/cors-fields.ts';
import type { Exchange } from '../exchange/exchange.ts';

/** A longer response is not worth reading only to discard it. */
const MAX_DISCARDED_BYTES = 65_536;

/** The head of the upstream's response, as the client gets it. */
export interface UpstreamHead {
  readonly status: number;
  /** Names and values in one flat list. */
  readonly fields: readonly string[];
  readonly reason: string | undefined;
}

/**
 * Takes the upstream's response piece by piece: `head`, any number of `data`, then `end` or `breakOff`. `flush` comes
 * after the pieces that arrived together, unless they were the last.
 */
export interface AnswerSink {
  head(head: UpstreamHead): void;
  /** @returns false if no more data may come until {@link AnswerSink.onReady} is called */
  data(chunk: Buffer): boolean;
  /**
   * More may be long in coming, so all that can be sent is sent now.
   * @returns false if no more data may come, as for `data`
   */
  flush(): boolean;
  end(): void;
  /** The upstream's response broke off. The client must not take a part of the response for the whole one. */
  breakOff(): void;
  /** Whether more data can still reach the client or a retry. */
  readonly isNeeded: boolean;
  /** Called when more data may come. Set by the code that reads from the upstream. */
  onReady: (() => void) | undefined;
}

/** A smaller piece of a response waits for the pieces that arrive together with it. */
const SMALL_BYTES = 4_096;
/** Longest last piece that is sent as a text, in one write with the head. */
const MAX_TEXT_BYTES = 16_384;

/**
 * Whether a piece waits for those that arrive together with it: each write costs some hundred bytes while it waits for
 * the client.
 */
export function isSmall(chunk: Buffer): boolean {
  return chunk.length < SMALL_BYTES;
}

/** Sends the response to the client as fast as the client reads it. */
export class StreamedAnswer implements AnswerSink {
  /** If the client disconnects, the forwarding stops anyway. */
  readonly isNeeded = true;
  onReady: (() => void) | undefined;
  readonly #unsent = new PieceList();
  #isHeadSent = false;
  #listensToDrain = false;

  constructor(private readonly exchange: Exchange) {}

  head(head: UpstreamHead): void {
    writeHead(this.exchange, head);
  }

  data(chunk: Buffer): boolean {
    this.#unsent.add(chunk);
    return isSmall(chunk) ? !this.exchange.response.writableNeedDrain : this.flush();
  }

  flush(): boolean {
    const { response } = this.exchange;
    if (!response.writableNeedDrain) this.#send();
    // The head must not wait for a slow body.
    if (!this.#isHeadSent) flushIfOpen(response);
    this.#isHeadSent = true;
    if (!response.writableNeedDrain) return true;
    this.#listenToDrain();
    return false;
  }

  end(): void {
    endWith(this.exchange.response, this.#unsent.take());
    discardBody(this.exchange);
  }

  breakOff(): void {
    this.#send();
    breakOff(this.exchange);
  }

  /** Most clients read as fast as the upstream sends. */
  #listenToDrain(): void {
    if (this.#listensToDrain) return;
    this.#listensToDrain = true;
    this.exchange.response.on('drain', () => {
      this.#send();
      this.onReady?.();
    });
  }

  #send(): void {
    const { response } = this.exchange;
    for (const piece of this.#unsent.take()) {
      if (response.writableEnded || response.destroyed) continue;
      response.write(piece);
      this.#isHeadSent = true;
    }
  }
}

/**
 * Ends the response with these pieces. Node writes a head and a text at once, but a head and bytes apart, which costs
 * more than to make a text of a small piece.
 */
export function endWith(response: ServerResponse, pieces: readonly Uint8Array[]): void {
  const [first] = pieces;
  if (first !== undefined && pieces.length === 1 && first.length <= MAX_TEXT_BYTES && !response.destroyed) {
    response.end(textOf(first), 'latin1');
    return;
  }
  for (const piece of pieces) if (!response.writableEnded && !response.destroyed) response.write(piece);
  response.end();
}

/** One character per byte. */
function textOf({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('latin1');
}

/** Sends the head, if it was not sent yet and the response is still open. */
export function flushIfOpen(response: ServerResponse): void {
  if (response.headersSent && !response.writableEnded && !response.destroyed) flushHead(response);
}

/** Reads the rest of a response that the client does not get, if it is short: its connection can then be used again. */
export class DiscardedAnswer implements AnswerSink {
  /** So that its connection can be used again. */
  readonly isNeeded = true;
  onReady: (() => void) | undefined;
  #bytes = 0;

  /** @param stop called if the response is too long to be read to its end */
  constructor(private readonly stop: () => void) {}

  head(): void {}

  data(chunk: Buffer): boolean {
    this.#bytes += chunk.length;
    if (this.#bytes > MAX_DISCARDED_BYTES) this.stop();
    return true;
  }

  flush(): boolean {
    return true;
  }

  end(): void {}

  breakOff(): void {}
}

/** Writes the head. From here on the gateway cannot answer this exchange in another way. */
export function writeHead(exchange: Exchange, { status, reason, fields }: UpstreamHead): void {
  exchange.response.writeHead(status, reason, withCors(fields, exchange.cors) as string[]);
  exchange.answered = true;
}

/**
 * Sends the head before any body. Node's own `flushHeaders` would encode bytes above ASCII as UTF-8 instead of sending
 * them as they came.
 */
export function flushHead(message: OutgoingMessage): void {
  message.write('', 'latin1');
}

/**
 * Breaks the client's response off. HTTP/1.0 needs a reset, because there the end of the connection can be the end of
 * the response.
 */
export function breakOff({ request, response }: Exchange): void {
  if (request.httpVersion === '1.0') response.socket?.resetAndDestroy();
  response.destroy();
}
