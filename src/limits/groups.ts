import { describe, OptionError, SubjectError } from '../base/errors.ts';
import { isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import { isPlainObject } from '../base/options.ts';
import type { WindowSet } from '../core/window-set.ts';

/** The groups that a request counts for, beside its account: an id by the name of the group (S31). */
export type Groups = Readonly<Record<string, string>>;

/** The subject whose window set a group has: plans and providers do not change it. */
interface GroupSubject {
  readonly account: string;
  readonly route?: string | undefined;
  readonly lane?: string | undefined;
}

/** More subjects would make one request too many calls of the store. */
const MAX_GROUPS = 4;
/** What a group's account begins with. */
const PREFIX = 'group:';
/** Without a colon, which ends the name in the account; it also goes into header fields. */
const NAME = /^[A-Za-z][\w-]{0,31}$/;
const BAD_NAME = "must be 1 to 32 letters, digits, _ and -, begin with a letter, and not be 'account'";
const NOT_GROUPS = "must be an object of ids by the names of groups, such as { customer: 'cus_7' }";
const RESERVED = `must not begin with ${PREFIX}, because limits.groups has groups: name the group in the field groups`;

/**
 * The account under which a group is counted: blocks, resets, peeks and adjustments of it name this account.
 * @param name of the group in `limits.groups`
 * @param id of the customer, organisation or key
 * @throws OptionError, SubjectError
 */
export function groupAccount(name: string, id: string): string {
  checkGroupName(name, 'name');
  if (typeof id !== 'string') throw new SubjectError('id', id);
  return `${PREFIX}${name}:${id}`;
}

/** The name of the group whose account it is; undefined for any other account. */
export function groupOf(account: string): string | undefined {
  if (!account.startsWith(PREFIX)) return undefined;
  const end = account.indexOf(':', PREFIX.length);
  return end < 0 ? undefined : account.slice(PREFIX.length, end);
}

/**
 * Refuses an account that begins as those of groups do, so that no caller can choose the counters of a group.
 * @throws SubjectError
 */
export function checkNoGroup(account: string): void {
  if (account.startsWith(PREFIX)) throw new SubjectError('account', account, undefined, RESERVED);
}

/** @throws OptionError */
export function checkGroupName(name: unknown, place: string): void {
  if (typeof name !== 'string' || !NAME.test(name) || name === 'account') throw new OptionError(place, name, BAD_NAME);
}

/**
 * The groups of a request: the name and the account of each, in the order of checking.
 * @throws OptionError, SubjectError
 */
export function accountsOf(groups: unknown): readonly (readonly [name: string, account: string])[] {
  if (!isPlainObject(groups)) throw new OptionError('groups', groups, NOT_GROUPS);
  const entries = Object.entries(groups);
  if (entries.length > MAX_GROUPS)
    throw new OptionError('groups', groups, `must be at most ${MAX_GROUPS}`, `${entries.length}`);
  return entries.map(([name, id]: [string, unknown]) => {
    // A limit that is silently left out would be none.
    if (typeof id !== 'string') throw new SubjectError(`groups.${name}`, id, 'leave a group out if it does not apply');
    return [name, `${PREFIX}${name}:${id}`];
  });
}

/**
 * The window sets of groups.
 * @param groups what {@link accountsOf} returned
 */
export function resolveAll(
  groups: readonly (readonly [name: string, account: string])[],
  { route, lane }: Omit<GroupSubject, 'account'>,
  resolve: (subject: GroupSubject) => MaybePromise<WindowSet>,
): MaybePromise<readonly WindowSet[]> {
  const windowSets = groups.map(([, account]) => resolve({ account, route, lane }));
  return windowSets.some(isPromise) ? Promise.all(windowSets) : (windowSets as WindowSet[]);
}

/** @param known names of `limits.groups` */
export function unknownGroup(name: string, known: readonly string[] = []): OptionError {
  const names = known.map(describe).join(', ');
  return new OptionError('groups', name, `names an unknown group (limits.groups has ${names || 'none'})`);
}
