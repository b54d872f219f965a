import { destination, type Logger, pino } from 'pino';
import type { Exchange } from './exchange.ts';

/** The process's log: JSON lines. */
export interface Log {
  readonly logger: Logger;
  /** One line for one answered request. Holds no token, no header value, no path but the route's template, and nothing of a query. */
  request(exchange: Exchange, status: number): void;
  /** Writes what is still kept; before the process exits. */
  flush(): void;
}

/** @param fd file descriptor, 1 for stdout */
export function createLog(fd = 1): Log {
  const sink = destination({ fd, sync: false });
  // A reader of the log that goes away must not take the gateway with it.
  sink.on('error', () => {});
  const logger = pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, sink);
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
    flush() {
      try {
        sink.flushSync();
      } catch {
        // Nobody reads any more.
      }
    },
  };
}
