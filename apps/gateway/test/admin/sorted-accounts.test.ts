import { expect, it } from 'vitest';
import { accountsWithPrefix, sortedAccounts } from '../../src/admin/sorted-accounts.ts';

const accountsOf = (ids: readonly string[]) => ids.map((id) => ({ id, application: 'app_1', scope: null }));

const IDS = ['b', 'a', 'aa', 'a\uffff', 'a\u{1f600}', 'ab', 'A', '', 'é', 'z', 'a%', '<img src=x onerror=alert(1)>'];

it.each(['', 'a', 'aa', 'aaa', 'a\uffff', 'A', 'é', 'zz', '\uffff'])(
  'lists what begins with %j, sorted',
  async (prefix) => {
    const sorted = await sortedAccounts(accountsOf(IDS));
    expect(accountsWithPrefix(sorted, prefix).map(({ id }) => id)).toEqual(
      IDS.filter((id) => id.startsWith(prefix)).sort(),
    );
  },
);

it('sorts many accounts in any order, once per config, and lets others run meanwhile', async () => {
  const accounts = accountsOf(Array.from({ length: 10_500 }, (_, i) => `acc_${(i * 7_919) % 10_501}`));
  let turns = 0;
  let isDone = false;
  const count = () => {
    turns++;
    if (!isDone) setImmediate(count);
  };
  count();
  const sorted = await sortedAccounts(accounts);
  isDone = true;
  expect(sorted.map(({ id }) => id)).toEqual(accounts.map(({ id }) => id).sort());
  expect(turns).toBeGreaterThan(10);
  expect(await sortedAccounts(accounts)).toBe(sorted);
});
