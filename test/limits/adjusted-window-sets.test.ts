/** One adjustment must not cost the others anything: stores cache by the identity of a plan. */
import { describe, expect, it } from 'vitest';
import { createLimiter, type Limiter, type Subject } from '../../src/index.ts';
import type { LayeredLimits } from '../../src/limits/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';

const EMAILS = 'POST /api/v1/emails';
const ROUTE_LIMITS = ['7/1m'];
const LIMITS: LayeredLimits = {
  default: { allMethods: ['60/1m'], routes: { [EMAILS]: ['10/1m'] } },
  plans: { free: {}, pro: { allMethods: ['600/1m'] } },
  providers: { linkedin: { allMethods: ['20/1m'] }, imap: { allMethods: ['30/1m'], routes: { [EMAILS]: ['5/1m'] } } },
  accounts: { acc_vip: { allMethods: ['900/1m'] } },
};
const SUBJECTS: readonly Subject[] = ['acc_1', 'acc_2', 'acc_vip'].flatMap((account) =>
  [undefined, 'linkedin', 'imap', 'unlisted'].flatMap((provider) =>
    [undefined, 'free', 'pro'].flatMap((plan) =>
      [EMAILS, 'GET /'].flatMap((route) =>
        [undefined, ROUTE_LIMITS].map((limits) => ({ account, provider, plan, route, limits })),
      ),
    ),
  ),
);

const limiterOf = (limits: LayeredLimits | (() => { allMethods: string[] }) = LIMITS): Limiter =>
  createLimiter({ store: createMemoryStore(), limits, validate: false });
const maxesOf = (limiter: Limiter, subject: Subject): number[] =>
  limiter.windowSet(subject).windows.map(({ max }) => max);

/** Adjusts, and returns the subjects whose plan is another object afterwards. */
function replacedBy(limiter: Limiter, adjust: () => void): Subject[] {
  const before = SUBJECTS.map((subject) => limiter.windowSet(subject));
  adjust();
  return SUBJECTS.filter((subject, i) => limiter.windowSet(subject) !== before[i]);
}

describe('S10: an adjustment', () => {
  it.each<[string, Parameters<Limiter['adjust']>[0], (subject: Subject) => boolean]>([
    ['an account', { account: 'acc_1' }, ({ account }) => account === 'acc_1'],
    ['a route of an account', { account: 'acc_1', route: EMAILS }, (s) => s.account === 'acc_1' && s.route === EMAILS],
    ['a provider', { provider: 'linkedin' }, (s) => s.provider === 'linkedin' && s.account !== 'acc_vip'],
    [
      "a customer's plan",
      { plan: 'pro' },
      (s) => s.plan === 'pro' && (s.provider ?? 'unlisted') === 'unlisted' && s.account !== 'acc_vip',
    ],
    [
      'the default',
      {},
      (s) => s.plan !== 'pro' && (s.provider ?? 'unlisted') === 'unlisted' && s.account !== 'acc_vip',
    ],
    ['a route of the default', { route: EMAILS }, (s) => s.route === EMAILS && s.provider !== 'imap'],
  ])('of %s replaces the plans whose limits change, and no other', (_, target, isChanged) => {
    const limiter = limiterOf();
    const first = SUBJECTS.map((subject) => limiter.windowSet(subject));
    expect(replacedBy(limiter, () => limiter.adjust(target, ['1/1m']))).toEqual(SUBJECTS.filter(isChanged));
    limiter.adjust(target, 'recommended');
    expect(SUBJECTS.filter((subject, i) => limiter.windowSet(subject) !== first[i])).toEqual([]);
  });

  it('keeps the plans of the others if the limits are a function', () => {
    const set = { allMethods: ['60/1m'] };
    const limiter = limiterOf(() => set);
    const adjust = () => limiter.adjust({ account: 'acc_1' }, ['1/1m']);
    expect(replacedBy(limiter, adjust)).toEqual(SUBJECTS.filter(({ account }) => account === 'acc_1'));
  });

  it('that is taken back leaves nothing of a name that the limits do not have', () => {
    const limiter = limiterOf();
    limiter.adjust({ plan: 'trial' }, ['3/1m']);
    expect(maxesOf(limiter, { account: 'a', route: 'GET /', plan: 'trial' })).toEqual([3]);
    limiter.adjust({ plan: 'trial' }, 'recommended');
    expect(() => limiter.windowSet({ account: 'a', route: 'GET /', plan: 'trial' })).toThrow(/unknown plan "trial"/);
  });

  it('of one of 10,000 adjusted accounts keeps 9,999 plans', () => {
    const limiter = limiterOf();
    const accounts = Array.from({ length: 10_000 }, (_, i) => `acc_${i}`);
    const subjectOf = (account: string): Subject => ({ account, route: EMAILS, provider: 'linkedin' });
    for (const account of accounts) limiter.adjust({ account }, ['40/1m']);
    const before = accounts.map((account) => limiter.windowSet(subjectOf(account)));
    limiter.adjust({ account: 'acc_17' }, ['3/1m']);
    expect(limiter.windowSet(subjectOf('acc_17')).windows[1]?.max).toBe(3);
    expect(accounts.filter((account, i) => limiter.windowSet(subjectOf(account)) !== before[i])).toEqual(['acc_17']);
  });
});
