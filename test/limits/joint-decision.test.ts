/** S31: the parts of a request, decided at the same time by a store on a server, and by a synchronous one. */
import { describe, expect, it } from 'vitest';
import { decorateStore } from '../../src/core/decorate-store.ts';
import type { LimitStore } from '../../src/core/ports.ts';
import { createLimiter } from '../../src/index.ts';
import { groupAccount } from '../../src/limits/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';

const LIMITS = { default: ['5/1m'], groups: { one: ['2/1m'], two: ['2/1m'] } } as const;
const GROUPS = { one: 'x', two: 'y' };
const [ONE, TWO] = [groupAccount('one', 'x'), groupAccount('two', 'y')];

/** A limiter on a store whose calls are listed; `fail` says which of them fail. */
function start(isSync: boolean, fail: (call: string) => boolean = () => false, missing: readonly string[] = []) {
  const inner = createMemoryStore({ clock: createFakeClock(1_000_000) });
  const calls: string[] = [];
  const call = (name: string, run: () => unknown): never => {
    calls.push(name);
    const result = (): unknown => {
      if (fail(name)) throw new Error(`failed: ${name}`);
      return run();
    };
    return (isSync ? result() : Promise.resolve().then(result)) as never;
  };
  const store: LimitStore = decorateStore(inner, {
    consume:
      (consume) =>
      (account, ...rest) =>
        call(account, () => consume(account, ...rest)),
    undo: (undo) => (decision) => call(`undo ${decision.account}`, () => undo(decision)),
    settle: (settle) => (decision, cost) => call(`settle ${decision.account}`, () => settle(decision, cost)),
  });
  for (const name of missing) Reflect.deleteProperty(store, name);
  const logged: unknown[] = [];
  const limiter = createLimiter({
    store: { ...store, synchronous: isSync } as LimitStore,
    limits: LIMITS,
    validate: false,
    logger: (message, error) => logged.push([message, (error as Error).message]),
  });
  const used = async (): Promise<number[]> => {
    const windows = await Promise.all(['a', ONE, TWO].map((account) => limiter.peek({ account })));
    return windows.map(([window]) => (window === undefined ? NaN : window.max - window.remaining));
  };
  return { limiter, inner, calls, used, logged };
}

describe.each([true, false])('a store that is synchronous: %s', (isSync) => {
  it('S31: a part that throws has the others undone, and the error is thrown', async () => {
    const { limiter, calls, used } = start(isSync, (call) => call === ONE);
    await expect(limiter.consume({ account: 'a', groups: GROUPS })).rejects.toThrow(`failed: ${ONE}`);
    expect(calls).toEqual(isSync ? ['a', ONE, 'undo a'] : ['a', ONE, TWO, 'undo a', `undo ${TWO}`]);
    expect(await used()).toEqual([0, 0, 0]);
  });

  it('S31: a rejection is returned although an undo failed: the charge stays until its windows end', async () => {
    const { limiter, used, logged } = start(isSync, (call) => call === 'undo a');
    await limiter.charge({ account: TWO, cost: 2 });
    const decision = await limiter.consume({ account: 'a', groups: GROUPS });
    expect(decision).toMatchObject({ accepted: false, rejectedBy: 'two' });
    expect(await used()).toEqual([1, 0, 2]);
    await limiter.consume({ account: 'a', groups: GROUPS });
    expect(logged).toEqual([[expect.stringContaining('could not be undone'), 'failed: undo a']]);
  });

  it('S31: a store without undo settles with a cost of 0', async () => {
    const { limiter, calls, used } = start(isSync, undefined, ['undo']);
    await limiter.charge({ account: ONE, cost: 2 });
    expect((await limiter.consume({ account: 'a', groups: GROUPS })).rejectedBy).toBe('one');
    expect(calls).toEqual(isSync ? ['a', ONE, 'settle a'] : ['a', ONE, TWO, 'settle a', `settle ${TWO}`]);
    expect(await used()).toEqual([0, 2, 0]);
  });

  it('S31: of several parts that reject, the first one counts', async () => {
    const { limiter, used } = start(isSync);
    for (const account of [ONE, TWO]) await limiter.charge({ account, cost: 2 });
    const decision = await limiter.consume({ account: 'a', groups: GROUPS });
    expect([decision.rejectedBy, decision.trace.map(({ group }) => group)]).toEqual(['one', [undefined, 'one']]);
    expect(await used()).toEqual([0, 2, 2]);
  });
});

it('S20, S31: a rejection that is certain without a call asks nothing, and charges nothing', async () => {
  const { limiter, inner, calls } = start(false);
  await limiter.charge({ account: TWO, cost: 2 });
  const denied = inner.consume(TWO, '*', limiter.windowSet({ account: TWO }), 1);
  const store = decorateStore(inner, { consume: () => () => expect.unreachable() });
  const knownRejection = (account: string) => (account === TWO ? denied : undefined);
  const other = createLimiter({ store: { ...store, knownRejection } as LimitStore, limits: LIMITS, logger: false });
  const decision = await other.consume({ account: 'a', groups: GROUPS });
  expect(decision).toMatchObject({ accepted: false, rejectedBy: 'two', account: 'a', shown: { group: 'two' } });
  expect(decision.trace).toEqual([decision.shown]);
  expect(calls).toEqual([]);
});

it('S31: a joint decision is shown in logs with the subject that rejected it, and can be marked degraded', async () => {
  const { limiter } = start(true);
  await limiter.charge({ account: TWO, cost: 2 });
  const decision = await limiter.consume({ account: 'a', groups: GROUPS, cost: 3 });
  expect(JSON.parse(JSON.stringify(decision))).toMatchObject({ account: 'a', rejectedBy: 'one', impossible: true });
  expect(decision.asDegraded()).toMatchObject({ degraded: true, accepted: false, rejectedBy: 'one' });
  const accepted = (await limiter.consume({ account: 'b', groups: { one: 'z' } })).asDegraded();
  expect(accepted).toMatchObject({ degraded: true, accepted: true, leased: false, blocked: undefined });
  expect(accepted.takeCharge()).toBe(false);
});
