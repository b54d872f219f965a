import type { Exchange } from '../exchange/exchange.ts';
import type { UpstreamFailure } from '../exchange/upstream-failure.ts';
import type { Log } from './log.ts';
import type { Metrics } from './metrics.ts';

/** During an outage every request fails. At most this many lines per second, upstream and cause are written. */
const MAX_LINES = 5;
const SECOND_MS = 1_000;

/** Counts the failures of upstreams and logs them, at most {@link MAX_LINES} lines per second, upstream and cause. */
export function createUpstreamFailures(
  log: Log,
  metrics: Metrics,
): (exchange: Pick<Exchange, 'id' | 'route'>, failure: UpstreamFailure) => void {
  /** Failures in the current second, per upstream and cause. */
  const counts = new Map<string, number>();
  return ({ id, route }, { upstream, cause, code, isSent }) => {
    metrics.onUpstreamFailure(upstream, cause);
    const name = `${cause} ${upstream}`;
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    if (count === 1) {
      setTimeout(() => {
        const leftOut = (counts.get(name) ?? 0) - MAX_LINES;
        counts.delete(name);
        if (leftOut > 0) log.logger.warn({ upstream, cause, leftOut }, 'more upstream failures');
      }, SECOND_MS).unref();
    }
    if (count > MAX_LINES) return;
    const fields = { req_id: id, route: route?.name ?? null, upstream, cause, code };
    log.logger.warn(fields, isSent ? 'upstream failed' : 'upstream unreachable');
  };
}
