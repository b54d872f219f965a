import { OptionError, SubjectError } from '../base/errors.ts';
import { checkOptions } from '../base/options.ts';
import type { Block, BlockTarget } from '../core/block.ts';

/** A year. For longer, or for ever, an application has to remember the account itself: then it can deny the request. */
export const LONGEST_BLOCK_MS = 365 * 86_400_000;
/** Longest reason, in UTF-16 units. */
const MAX_REASON = 200;

/** A block, and whether it begins a fresh start. */
export interface BlockOptions extends Block {
  /**
   * Whether the counters of the target are deleted in the same step, as `reset` deletes them: then every window is empty
   * when the block ends.
   * @default false
   */
  readonly reset?: boolean | undefined;
}

/** @throws OptionError */
export function checkBlock(block: object): Required<BlockOptions> {
  checkOptions(block, ['forMs', 'reason', 'reset'], 'block');
  const { forMs, reason, reset = false } = block as { forMs: unknown; reason: unknown; reset: unknown };
  if (!Number.isSafeInteger(forMs) || (forMs as number) < 1 || (forMs as number) > LONGEST_BLOCK_MS)
    throw new OptionError(
      'block.forMs',
      forMs,
      `must be an integer of milliseconds from 1 to ${LONGEST_BLOCK_MS} (a year)`,
    );
  if (reason !== undefined && (typeof reason !== 'string' || reason.length > MAX_REASON))
    throw new OptionError('block.reason', reason, `must be a text of at most ${MAX_REASON} characters`);
  if (typeof reset !== 'boolean') throw new OptionError('block.reset', reset, 'must be true or false');
  return { forMs: forMs as number, reason, reset };
}

/** @throws OptionError, SubjectError */
export function checkBlockTarget(target: object): BlockTarget {
  checkOptions(target, ['account', 'route'], 'target');
  const { account, route } = target as { account: unknown; route: unknown };
  if (typeof account !== 'string') throw new SubjectError('account', account);
  // A route that is given but undefined would silently block every route of the account.
  if ('route' in target && typeof route !== 'string') throw new SubjectError('route', route);
  return { account, route: route as string | undefined };
}
