import { OptionError } from '../../base/errors.ts';
import { checkInteger, checkOptions, isPlainObject } from '../../base/options.ts';
import type { OnStoreFailure } from './failover.ts';

/** The options of a limit store on a server that do not depend on the server. */
export interface LimitOptions {
  readonly onStoreFailure?: OnStoreFailure;
  readonly denyCacheMaxMs?: number;
  readonly denyCacheMaxKeys?: number;
}

const POLICIES: readonly unknown[] = ['local', 'admit', 'refuse'];
/** The log's text about each failure policy. */
const EFFECTS: Readonly<Record<Extract<OnStoreFailure, string>, string>> = {
  local: 'this process decides with counters of its own',
  admit: 'every request is accepted',
  refuse: 'every request is refused',
};

export function effectOf(policy: OnStoreFailure): string {
  return EFFECTS[typeof policy === 'object' ? 'local' : policy];
}

/**
 * The options with their defaults.
 * @throws OptionError
 */
export function fillLimitOptions(options: LimitOptions): Required<LimitOptions> {
  const { onStoreFailure = 'local', denyCacheMaxMs = 1_000, denyCacheMaxKeys = 10_000 } = options;
  checkInteger('denyCacheMaxMs', denyCacheMaxMs, 0);
  checkInteger('denyCacheMaxKeys', denyCacheMaxKeys, 1);
  checkPolicy(onStoreFailure);
  return { onStoreFailure, denyCacheMaxMs, denyCacheMaxKeys };
}

function checkPolicy(given: OnStoreFailure): void {
  if (POLICIES.includes(given)) return;
  if (!isPlainObject(given))
    throw new OptionError(
      'onStoreFailure',
      given,
      `must be one of ${POLICIES.join(', ')} or { local: { share: 0.1 } }`,
    );
  checkOptions(given, ['local'], 'onStoreFailure');
  checkOptions(given.local, ['share'], 'onStoreFailure.local');
  const { share } = given.local;
  if (!(typeof share === 'number' && share > 0 && share <= 1))
    throw new OptionError('onStoreFailure.local.share', share, 'must be a number above 0 and up to 1');
}
