import { isOutage } from './api/input.ts';
import type { Config } from './config/schema.ts';
import type { RateLimitServer } from './decisions/rate-limit-server.ts';
import { type DecideRateLimits, UndecidedError } from './decisions/rate-limit-service.ts';
import type { Log } from './operations/log.ts';
import type { Metrics } from './operations/metrics.ts';
import { ListenError, RATE_LIMIT_SERVICE_PLACES } from './server/listen.ts';

/** Parts of the process that the listener reports to. */
interface ListenerParts {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly decide: () => DecideRateLimits | undefined;
  /** Whether the current config has a domain. */
  readonly knows: (domain: string) => boolean;
}

/** A descriptor that the config does not know is not limited: this must not happen in silence. */
const WARN_EVERY_MS = 10_000;

/**
 * Listens for the calls of Envoy. gRPC is loaded only here, because few gateways need it.
 * @throws ListenError
 */
export async function listenForEnvoy(
  { host, port }: NonNullable<Config['rateLimitService']>,
  { log, metrics, decide, knows }: ListenerParts,
): Promise<RateLimitServer> {
  const { startRateLimitServer } = await import('./decisions/rate-limit-server.ts');
  let nextWarning = 0;
  const warnOf = (domain: string, keys: readonly string[]): void => {
    if (performance.now() < nextWarning) return;
    nextWarning = performance.now() + WARN_EVERY_MS;
    log.logger.warn({ domain, keys }, 'a descriptor is not in rateLimitService.domains, so it is not limited');
  };
  try {
    return await startRateLimitServer({
      host,
      port,
      // A listener is neither added nor removed by a reload.
      decide: () => decide() as DecideRateLimits,
      isOutage: (error) => error instanceof UndecidedError || isOutage(error),
      onError: (error) => log.logger.error({ err: error }, 'unexpected error'),
      onCall(call, code, answer, ms) {
        const domain = call !== undefined && knows(call.domain) ? call.domain : 'unknown';
        metrics.onDoorRequest('envoy', code);
        for (const [at, { outcome }] of (answer?.descriptors ?? []).entries()) {
          metrics.onDescriptor(domain, outcome);
          if (outcome === 'unmatched')
            warnOf(domain, call?.descriptors[at]?.entries.map(({ key }) => key.slice(0, 64)) ?? []);
        }
        log.logger.info({ door: 'envoy', domain, code, ms: Math.round(ms * 1_000) / 1_000 }, 'rate limit call');
      },
    });
  } catch (error) {
    throw new ListenError({ host, port }, RATE_LIMIT_SERVICE_PLACES, error as NodeJS.ErrnoException);
  }
}
