import { placeOfTarget } from 'headgate/internal';
import type { AdjustTarget } from 'headgate/limits';
import type { SharedLimits, SharedLimitsEvent } from 'headgate/shared-limits';
import { createSharedLimits } from 'headgate/shared-limits';
import type { AdjustmentEntry } from 'headgate/stores';
import { limitsOf } from '../config/limits.ts';
import type { Config } from '../config/schema.ts';
import type { Log } from '../operations/log.ts';
import type { ScrapedMetric } from '../operations/store-metrics.ts';
import type { GatewayStore } from './gateway-store.ts';

/** Most limits that one line of the log names. */
const MAX_SHOWN = 20;

/** The limits of the config, with the adjustments of a store over them. */
export interface AdjustedLimits {
  readonly limits: SharedLimits;
  readonly metrics: readonly ScrapedMetric[];
}

/** The parts of a process that its shared limits need. */
export interface AdjustedLimitsOptions {
  readonly store: Pick<GatewayStore, 'adjustments' | 'keptFile'>;
  readonly log: Log;
  /** Is called with each change of limits that the process obeys from now on. */
  readonly onChange: (change: Extract<SharedLimitsEvent, { readonly type: 'changed' }>) => void;
}

export function createAdjustedLimits(config: Config, { store, log, onChange }: AdjustedLimitsOptions): AdjustedLimits {
  const { refreshMs, max: maxAdjustments } = config.adjustments;
  const counts = { failures: 0, forks: 0 };
  const onEvent = (event: SharedLimitsEvent): void => {
    if (event.type === 'failed') counts.failures++;
    if (event.type === 'forked') counts.forks++;
    if (event.type === 'changed') onChange(event);
    report(event, log);
  };
  const limits = createSharedLimits({
    base: limitsOf(config),
    adjustments: store.adjustments,
    keptFile: store.keptFile,
    refreshMs,
    maxAdjustments,
    onEvent,
    logger: false,
  });
  return { limits, metrics: metricsOf(limits, counts) };
}

function report(event: SharedLimitsEvent, { logger, namesAccounts }: Log): void {
  switch (event.type) {
    case 'changed': {
      const { revision, entries } = event;
      for (const entry of entries) logger.info({ revision, ...shown(entry, namesAccounts) }, 'limits adjusted');
      if (entries.length === 0) logger.info({ revision }, 'adjustments read');
      return;
    }
    case 'restored':
      logger.warn({ revision: event.revision }, 'adjustments given back to the store, which had lost them');
      return;
    case 'forked':
      for (const entry of event.lost)
        logger.error(
          { version: entry.version, ...shown(entry, namesAccounts) },
          'a change of limits is gone: the store has another history',
        );
      return;
    case 'hidden': {
      const limits = event.adjustments.slice(0, MAX_SHOWN).map(({ target }) => placeOf(target, namesAccounts));
      const count = event.adjustments.length;
      logger.warn({ count, limits }, 'limits of the config changed, but adjustments of them go on to apply');
      return;
    }
    case 'recovered':
      logger.info('adjustments are read again');
      return;
    case 'notKept':
      logger.warn({ err: event.error }, 'the file of the adjustments cannot be used: nothing is kept in it');
      return;
    case 'failed':
      if (event.isFirst) logger.warn({ err: event.error }, 'adjustments cannot be read: the last known ones apply');
  }
}

/** A change, as the log shows it. The id of an account may be personal data. */
function shown({ by, reason, source, limits }: AdjustmentEntry, namesAccounts: boolean) {
  const places = limits.map(({ target }) => placeOf(target, namesAccounts));
  return { by, reason, source, limits: places };
}

function placeOf(target: AdjustTarget, namesAccounts: boolean): string {
  return placeOfTarget(target.account === undefined || namesAccounts ? target : { ...target, account: '…' });
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
