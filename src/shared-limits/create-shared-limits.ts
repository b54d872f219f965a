import { builtinModule } from '../base/builtin-module.ts';
import { OptionError } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import { checkInteger, checkOptions } from '../base/options.ts';
import type { Limits } from '../limits/plans.ts';
import type { AdjustmentStore, KeptFile } from './ports.ts';
import { randomText } from './revision.ts';
import type { SharedLimits, SharedLimitsEvent } from './shared-limits.ts';
import { StoredLimits } from './stored-limits.ts';

/** Options of {@link createSharedLimits}. */
export interface SharedLimitsOptions {
  /** The limits without any adjustment, as `createLimiter` takes them. */
  readonly base: Limits;
  /** Where adjustments are stored, e.g. `createRedisAdjustments(client)`. {@link SharedLimits.close} closes it. */
  readonly adjustments: AdjustmentStore;
  /**
   * Where this process keeps a copy of what it last knew, e.g. `createKeptFile(path)` of `headgate/file`. It applies from a
   * start on while the store is away, and restores a store that has lost its data. A store with another history wins.
   */
  readonly keptFile?: KeptFile | undefined;
  /**
   * Whether this process only reads: it obeys the adjustments, but never changes or restores them, and is not among
   * `instances()`. A user of Redis that may only read is enough then.
   * @default false
   */
  readonly readOnly?: boolean | undefined;
  /**
   * How often the store is read, in milliseconds: 10 to 60,000.
   * @default 500
   */
  readonly refreshMs?: number | undefined;
  /**
   * Most adjustments that there may be: 1 to 100,000. Each process has all of them in memory.
   * @default 10_000
   */
  readonly maxAdjustments?: number | undefined;
  /**
   * Name of this process in the list of `instances()`: 1 to 200 characters, different for each.
   * @default host, process id and four random characters
   */
  readonly instance?: string | undefined;
  /** Is called with everything that happens, for metrics and logs. What it throws is logged. */
  readonly onEvent?: ((event: SharedLimitsEvent) => void) | undefined;
  /**
   * Is called if changes are lost after a fork, or cannot be read. False: nothing is logged.
   * @default console.error
   */
  readonly logger?: Logger | false | undefined;
}

const OPTIONS = [
  'base',
  'adjustments',
  'keptFile',
  'readOnly',
  'refreshMs',
  'maxAdjustments',
  'instance',
  'onEvent',
  'logger',
];

/**
 * Creates limits that all processes with the same store of adjustments share.
 * @example
 * ```ts
 * const limits = createSharedLimits({ base: { allMethods: ['60/1m'] }, adjustments: createRedisAdjustments(client) });
 * const limiter = createLimiter({ store: createRedisStore(client), limits });
 * await limits.put({ account: 'acc_1' }, ['600/1m'], { by: 'jane', reason: 'INC-12', forMs: 3_600_000 });
 * ```
 * @throws LimitError, OptionError with the place of the fault
 */
export function createSharedLimits(options: SharedLimitsOptions): SharedLimits {
  checkOptions(options, OPTIONS, 'options');
  const { adjustments: store, refreshMs = 500, maxAdjustments = 10_000, instance = ownName() } = options;
  for (const method of ['read', 'append', 'restore', 'history', 'instances'] as const)
    if (typeof store?.[method] !== 'function')
      throw new OptionError('adjustments', store, `must have ${method}(), as createMemoryAdjustments() does`);
  checkInteger('refreshMs', refreshMs, 10, 60_000);
  checkInteger('maxAdjustments', maxAdjustments, 1, 100_000);
  if (typeof instance !== 'string' || instance === '' || instance.length > 200)
    throw new OptionError('instance', instance, 'must be 1 to 200 characters');
  const { base, keptFile, readOnly = false, onEvent, logger } = options;
  if (keptFile !== undefined && (typeof keptFile?.load !== 'function' || typeof keptFile.save !== 'function'))
    throw new OptionError('keptFile', keptFile, 'must have load() and save(), as createKeptFile() does');
  if (typeof readOnly !== 'boolean') throw new OptionError('readOnly', readOnly, 'must be a boolean');
  const checked = { readOnly, refreshMs, maxAdjustments, instance };
  return new StoredLimits({ base, adjustments: store, keptFile, onEvent, logger, ...checked });
}

function ownName(): string {
  const host = builtinModule<typeof import('node:os')>('node:os')?.hostname() ?? 'process';
  return `${host.slice(0, 100)}:${globalThis.process?.pid ?? 0}:${randomText(4)}`;
}
