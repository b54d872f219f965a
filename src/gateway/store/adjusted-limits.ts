import type { AdjustmentStore } from '../../core/ports.ts';
import { placeOfTarget } from '../../limits/plans.ts';
import { createSharedLimits } from '../../limits/shared/create-shared-limits.ts';
import type { SharedLimits, SharedLimitsEvent } from '../../limits/shared/shared-limits.ts';
import { limitsOf } from '../config/limits.ts';
import type { Config } from '../config/schema.ts';
import type { Log } from '../operations/log.ts';
import type { ScrapedMetric } from '../operations/store-metrics.ts';

/** The limits of the config, with the adjustments of a store over them. */
export interface AdjustedLimits {
  readonly limits: SharedLimits;
  readonly metrics: readonly ScrapedMetric[];
}

export function createAdjustedLimits(config: Config, store: AdjustmentStore, log: Log): AdjustedLimits {
  const { refreshMs, max: maxAdjustments } = config.adjustments;
  const counts = { failures: 0, forks: 0 };
  const logger = (message: string, err: unknown): void => log.logger.error({ err }, message);
  const onEvent = (event: SharedLimitsEvent): void => {
    if (event.type === 'failed') counts.failures++;
    if (event.type === 'forked') counts.forks++;
    report(event, log);
  };
  const limits = createSharedLimits({
    ...{ base: limitsOf(config), adjustments: store },
    ...{ refreshMs, maxAdjustments, onEvent, logger },
  });
  return { limits, metrics: metricsOf(limits, counts) };
}

function report(event: SharedLimitsEvent, { logger }: Log): void {
  switch (event.type) {
    case 'changed': {
      const { revision, entries } = event;
      for (const { by, reason, source, limits } of entries)
        logger.info(
          { revision, by, reason, source, limits: limits.map(({ target }) => placeOfTarget(target)) },
          'limits adjusted',
        );
      if (entries.length === 0) logger.info({ revision }, 'adjustments read');
      return;
    }
    case 'restored':
      logger.warn({ revision: event.revision }, 'adjustments given back to the store, which had lost them');
      return;
    case 'recovered':
      logger.info('adjustments are read again');
      return;
    case 'failed':
      if (event.isFirst) logger.warn({ err: event.error }, 'adjustments cannot be read: the last known ones apply');
  }
}

function metricsOf(
  limits: SharedLimits,
  counts: { readonly failures: number; readonly forks: number },
): ScrapedMetric[] {
  const gauge = (name: string, help: string, value: () => number): ScrapedMetric => ({
    ...{ type: 'gauge', name: `limits_${name}`, help, value, aggregator: 'max' },
  });
  const counter = (name: string, help: string, value: () => number): ScrapedMetric => ({
    ...{ type: 'counter', name: `limits_${name}_total`, help, value },
  });
  return [
    gauge('version', 'Version of the last change of limits that this process obeys', () => limits.state.version),
    gauge('adjustments', 'Limits that are adjusted', () => limits.state.adjustments),
    gauge('unusable', 'Adjustments that this process cannot use', () => limits.state.unusable),
    gauge('age_seconds', 'Time since the adjustments were read', () => (limits.state.ageMs ?? 0) / 1_000),
    gauge('kept', '1 while the adjustments cannot be read, so that the last known ones apply', () =>
      limits.state.source === 'store' ? 0 : 1,
    ),
    counter('refresh_failures', 'Readings of the adjustments that failed', () => counts.failures),
    counter('forks', 'Times that the store had another history, and changes were lost', () => counts.forks),
  ];
}
