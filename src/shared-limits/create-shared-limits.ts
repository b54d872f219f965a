import { builtinModule } from '../base/builtin-module.ts';
import { OptionError } from '../base/errors.ts';
import { checkFunctions, checkInteger, checkMethods, checkOptions } from '../base/options.ts';
import { randomText } from './revision.ts';
import type { SharedLimits, SharedLimitsOptions } from './shared-limits.ts';
import { StoredLimits } from './stored-limits.ts';

const OPTIONS = [
  'base',
  'units',
  'adjustments',
  'keptFile',
  'readOnly',
  'refreshMs',
  'maxAdjustments',
  'instance',
  'onEvent',
  'logger',
];
const METHODS = ['read', 'append', 'restore', 'history', 'instances'];

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
  checkMethods('adjustments', store, METHODS, ', as createMemoryAdjustments() does');
  checkFunctions(options, ['onEvent']);
  checkInteger('refreshMs', refreshMs, 10, 60_000);
  checkInteger('maxAdjustments', maxAdjustments, 1, 100_000);
  if (typeof instance !== 'string' || instance === '' || instance.length > 200)
    throw new OptionError('instance', instance, 'must be 1 to 200 characters');
  const { base, keptFile, readOnly = false, onEvent, logger } = options;
  if (keptFile !== undefined) checkMethods('keptFile', keptFile, ['load', 'save'], ', as createKeptFile() does');
  if (typeof readOnly !== 'boolean') throw new OptionError('readOnly', readOnly, 'must be a boolean');
  const checked = { readOnly, refreshMs, maxAdjustments, instance };
  return new StoredLimits({ base, adjustments: store, keptFile, onEvent, logger, ...checked });
}

function ownName(): string {
  const host = builtinModule<typeof import('node:os')>('node:os')?.hostname() ?? 'process';
  return `${host.slice(0, 100)}:${globalThis.process?.pid ?? 0}:${randomText(4)}`;
}
