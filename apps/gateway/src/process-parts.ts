import { hostname } from 'node:os';
import { createIdempotency, type Idempotency } from 'headgate';
import type { IdempotencyEvent } from 'headgate/idempotency';
import { createLeases } from 'headgate/limits';
import type { SharedLimits } from 'headgate/shared-limits';
import type { LimitStore } from 'headgate/stores';
import { ownFigures } from './admin/figures.ts';
import { limitsOf } from './config/limits.ts';
import { settingsIn } from './config/routes.ts';
import type { Config } from './config/schema.ts';
import type { Log } from './operations/log.ts';
import type { Metrics } from './operations/metrics.ts';
import { leaseMetrics } from './operations/store-metrics.ts';
import { version } from './operations/version.ts';
import { ShadowRunner } from './shadow/shadow-runner.ts';
import { createAdjustedLimits } from './store/adjusted-limits.ts';
import type { GatewayStore } from './store/gateway-store.ts';
import { openStore } from './store/store.ts';
import { type ProcessDetails, TOP, writeDetails } from './traffic/process-details.ts';
import { Traffic } from './traffic/traffic.ts';

/** Longest wait at the start for the adjustments; the first reading may take this many deadlines of the store. */
const READY_MS = 2_000;
const FIRST_READING = 4;
/** Longest wait at the end for the store to acknowledge outcomes. */
const CLOSE_MS = 2_000;

/**
 * The parts of a process with a store, with the bounds of the config that it starts with. They last as long as the
 * process. A process that serves requests has them, and so has a primary with an Admin API.
 */
export interface ProcessParts {
  readonly store: GatewayStore;
  readonly startedAt: Date;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly traffic: Traffic;
  readonly shadow: ShadowRunner;
  /** The config's limits, with the operators' adjustments. */
  readonly sharedLimits: SharedLimits;
  readonly limits: LimitStore;
  /** The same counters, always asked: clients choose their addresses, so leases would not help. */
  readonly addressLimits: LimitStore;
  readonly idempotency: Idempotency;
  readonly onIdempotency: (event: IdempotencyEvent) => void;
  /** The details that this process reports to the others. */
  readonly details: () => ProcessDetails;
  readonly figures: ReturnType<typeof ownFigures>;
  /** Resolves when the adjustments are read, or after a bounded wait. */
  ready(): Promise<void>;
  /** Obeys the limits and the candidate of this config, and counts if it has an Admin API. */
  adopt(config: Config): Promise<void>;
  close(): Promise<void>;
}

/** @param isReady whether the process takes requests */
export async function openParts(
  config: Config,
  { log, metrics, isReady }: { readonly log: Log; readonly metrics: Metrics; readonly isReady: () => boolean },
): Promise<ProcessParts> {
  const store = await openStore(config, log);
  const startedAt = new Date();
  const traffic = new Traffic();
  const adjusted = createAdjustedLimits(config, { store, log, onChange: (change) => traffic.onLimits(change) });
  const { limits: sharedLimits } = adjusted;
  metrics.add([...store.metrics, ...adjusted.metrics]);
  const onIdempotency = (event: IdempotencyEvent): void => {
    metrics.onIdempotency(event);
    traffic.onIdempotency(event);
  };
  const shadow = new ShadowRunner(config, { store, log, metrics, traffic });
  const addressLimits = metrics.measured(store.limits, (seconds) => traffic.onStoreCall(seconds));
  const leases = config.leases === false ? undefined : createLeases(config.leases);
  metrics.add(leases === undefined ? [] : leaseMetrics(() => leases.stats()));
  const limits = metrics.inFlight.counted(log.decisions.numbered(leases?.addTo(addressLimits) ?? addressLimits));
  const idempotency = createIdempotency({
    ...settingsIn(config.idempotency),
    store: store.claims,
    reconcile: undefined,
    onEvent: onIdempotency,
    // The config is checked separately.
    validate: false,
    logger: (message, err) => log.logger.error({ err }, message),
  });
  const details = (): ProcessDetails => ({
    version,
    host: hostname(),
    startedAtMs: startedAt.getTime(),
    state: isReady() ? 'serving' : 'draining',
    breaker: store.breaker(),
    perSecond: traffic.decisionsPerSecond(),
    shadow: shadow.said,
    top: traffic.tops(TOP),
  });
  store.fleet?.start(sharedLimits.instance, () => writeDetails(details()));
  return {
    store,
    startedAt,
    log,
    metrics,
    traffic,
    shadow,
    sharedLimits,
    limits,
    addressLimits,
    idempotency,
    onIdempotency,
    details,
    figures: ownFigures({ traffic, idempotency, store, shadow, leases }),
    ready: async () => {
      await sharedLimits.ready({ timeoutMs: Math.min(READY_MS, FIRST_READING * config.storeDeadlineMs) });
    },
    async adopt(next) {
      traffic.turn((next.admin?.tokens.length ?? 0) > 0);
      await sharedLimits.rebase(limitsOf(next));
      shadow.setConfig(next);
    },
    async close() {
      shadow.close();
      await Promise.all([idempotency.close({ timeoutMs: CLOSE_MS }), sharedLimits.close(), limits.close?.()]);
      store.close();
    },
  };
}
