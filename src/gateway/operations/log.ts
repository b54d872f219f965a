import { destination, type Logger, pino } from 'pino';
import type { Exchange } from '../exchange/exchange.ts';

/** The process's log: JSON lines. */
export interface Log {
  readonly logger: Logger;
  /** One line for one answered request. Holds no token, no header value, no path but the route's template, and nothing of a query. */
  request(exchange: Exchange, status: number): void;
  /** Writes what is still kept and ends the log, before the process exits; a reader that has stalled does not hold it. */
  close(): Promise<void>;
}

/** Bytes of lines kept for a reader that is slow; past it lines are dropped, since the gateway must live. */
const MOST_KEPT = 16_777_216;
const CLOSE_MS = 500;

/** Deepest cause that is told. */
const MOST_CAUSES = 3;

/** What an error says of itself, and no more: a client's error may carry the command that failed, and so a password or a key. */
function describeError(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) return String(error);
  const { name, message, stack, cause } = error;
  const { code } = error as { code?: unknown };
  return {
    type: name,
    message,
    ...(typeof code === 'string' ? { code } : {}),
    stack,
    ...(cause === undefined || depth === MOST_CAUSES ? {} : { cause: describeError(cause, depth + 1) }),
  };
}

/** @param fd file descriptor, 1 for stdout */
export function createLog(fd = 1): Log {
  const sink = destination({ fd, sync: false, maxLength: MOST_KEPT });
  // A reader of the log that goes away must not take the gateway with it.
  sink.on('error', () => {});
  const serializers = { err: describeError };
  const logger = pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime, serializers }, sink);
  return {
    logger,
    request(exchange, status) {
      const { id, request, response, route, decided, startedAt } = exchange;
      logger.info(
        {
          req_id: id,
          method: request.method,
          route: route?.name ?? null,
          status,
          ms: Math.round((performance.now() - startedAt) * 1_000) / 1_000,
          decision: decided,
          ...(response.writableFinished ? {} : { aborted: true }),
        },
        'request',
      );
    },
    close: () =>
      new Promise((resolve) => {
        const timer = setTimeout(() => {
          // Else pino would write the rest at the exit, and wait for the reader for ever.
          sink.destroy();
          resolve();
        }, CLOSE_MS);
        sink.once('close', () => {
          clearTimeout(timer);
          resolve();
        });
        sink.end();
      }),
  };
}
