import type { ServerResponse } from 'node:http';
import { discardBody } from '../exchange/answers.ts';
import type { Exchange } from '../exchange/exchange.ts';

/** The head of the upstream's answer, as the client gets it. */
export interface AnswerHead {
  readonly status: number;
  readonly reason: string | undefined;
  /** Names and values in one flat list. */
  readonly fields: readonly string[];
}

/** Where the upstream's answer goes, piece by piece: `head`, any number of `data`, then `end` or `breakOff`. */
export interface AnswerSink {
  head(head: AnswerHead): void;
  /** Returns false where nothing more may come until the response has drained, or {@link AnswerSink.onReady} was called. */
  data(chunk: Buffer): boolean;
  end(): void;
  /** The upstream broke in mid-answer: the client must not take half an answer for a whole one. */
  breakOff(): void;
  /** Called when more may come; set by whoever reads the upstream. */
  onReady: (() => void) | undefined;
}

/** Straight on to the client, as fast as it takes it. */
export class StreamedAnswer implements AnswerSink {
  onReady: (() => void) | undefined;

  constructor(private readonly exchange: Exchange) {
    exchange.response.on('drain', () => this.onReady?.());
  }

  head(head: AnswerHead): void {
    writeHead(this.exchange, head);
    // The head of an answer that takes its time must not wait for its body; one write for both where they come together.
    setImmediate(() => {
      const { response } = this.exchange;
      if (!response.writableEnded && !response.destroyed) flushHead(response);
    });
  }

  data(chunk: Buffer): boolean {
    return this.exchange.response.write(chunk);
  }

  end(): void {
    this.exchange.response.end();
    discardBody(this.exchange);
  }

  breakOff(): void {
    breakOff(this.exchange);
  }
}

/** From here on nobody else may answer. */
export function writeHead(exchange: Exchange, { status, reason, fields }: AnswerHead): void {
  exchange.response.writeHead(status, reason, fields as string[]);
  exchange.answered = true;
}

/** Sends the head before any body. Node's own `flushHeaders` would write its bytes above ASCII as UTF-8, where all else writes them as they came. */
export function flushHead(response: ServerResponse): void {
  response.write('', 'latin1');
}

/** Where only the end of the connection ends an answer, breaking it off takes a reset. */
export function breakOff({ request, response }: Exchange): void {
  if (request.httpVersion === '1.0') response.socket?.resetAndDestroy();
  response.destroy();
}
