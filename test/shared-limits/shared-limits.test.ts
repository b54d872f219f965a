/** Shared limits of processes with one store. The stores are tested with `adjustmentStoreSuite`. */

import { waitFor } from 'headgate-testbed/patience';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { isHeadgateError } from '../../src/base/errors.ts';
import type { AdjustmentEntry, AdjustmentState } from '../../src/core/adjustment.ts';
import { monotonicClock } from '../../src/core/clock.ts';
import { createLimiter } from '../../src/limits/limiter.ts';
import { createMemoryAdjustments, createMemoryStore } from '../../src/memory.ts';
import {
  createSharedLimits,
  type SharedLimits,
  type SharedLimitsEvent,
  type SharedLimitsOptions,
} from '../../src/shared-limits/index.ts';
import type { AdjustmentStore } from '../../src/shared-limits/ports.ts';
import { MemoryAdjustments } from '../../src/shared-limits/stores/memory.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';

const opened: SharedLimits[] = [];
afterEach(() => Promise.all(opened.splice(0).map((limits) => limits.close())));

const START = 1_800_000_000_000;
const BASE = { default: { allMethods: ['60/1m'] }, providers: { linkedin: { allMethods: ['20/1m'] } } };
const JANE = { by: 'jane' };
const ACCOUNT = { account: 'acc_1', route: 'GET /emails' };

/** A process with shared limits. It reads the store every 10 ms. */
function start(adjustments: AdjustmentStore, options: Partial<SharedLimitsOptions> = {}) {
  const events: SharedLimitsEvent[] = [];
  const limits = createSharedLimits({
    ...{ base: BASE, adjustments, refreshMs: 10, logger: false, onEvent: (event) => events.push(event) },
    ...options,
  });
  opened.push(limits);
  const maxOf = (subject: object = {}) => limits.windowSet({ ...ACCOUNT, ...subject }).windows.map(({ max }) => max);
  return { limits, events, maxOf };
}

/** A store that can be away, as one on another machine can. */
function awayable(store: AdjustmentStore) {
  const state = { isAway: false };
  const away = () => Promise.reject(new Error('the store is away'));
  const wrapped = new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => (state.isAway ? away() : Reflect.apply(value, target, args));
    },
  });
  return { store: wrapped, state };
}

describe('a change', () => {
  it('holds at once where it is made, and soon in every other process', async () => {
    const store = createMemoryAdjustments();
    const [one, other] = [start(store), start(store)];
    const { limits } = one;
    const changed = await limits.put({ account: 'acc_1' }, ['600/1m'], { ...JANE, reason: 'INC-12' });
    expect([one.maxOf(), one.maxOf({ account: 'acc_2' })]).toEqual([[600], [60]]);
    expect(changed).toMatchObject({ version: 1, limits: [{ target: { account: 'acc_1' } }] });
    expect(await limits.applied(changed.revision)).toEqual({ instances: 2, of: 2, missing: [] });
    expect(other.maxOf()).toEqual([600]);
    expect(other.limits.list()).toEqual([
      {
        ...{ target: { account: 'acc_1' }, windows: [{ max: 600, durationMs: 60_000 }], version: 1, by: 'jane' },
        ...{ reason: 'INC-12', at: expect.any(Number), until: undefined },
      },
    ]);
  });

  it('leaves the plans of all others as the same objects', async () => {
    const { limits } = start(createMemoryAdjustments());
    const before = limits.windowSet({ account: 'acc_2', route: 'a', provider: 'linkedin' });
    await limits.put({ account: 'acc_1' }, ['600/1m'], JANE);
    expect(limits.windowSet({ account: 'acc_2', route: 'a', provider: 'linkedin' })).toBe(before);
  });

  it('applies to every layer, and a reset gives back the base', async () => {
    const { limits, maxOf } = start(createMemoryAdjustments());
    await limits.change(
      [
        { target: {}, windows: ['50/1m'] },
        { target: { provider: 'linkedin' }, windows: ['10/1m'] },
        { target: { plan: 'pro' }, windows: ['90/1m'] },
        { target: { account: 'acc_1', route: 'GET /emails' }, windows: ['5/1s'] },
      ],
      { ...JANE, confirm: true },
    );
    expect(maxOf()).toEqual([5, 50]);
    expect(maxOf({ provider: 'linkedin', plan: 'pro' })).toEqual([5, 10]);
    expect(maxOf({ account: 'acc_2', plan: 'pro' })).toEqual([90]);
    await limits.reset({ provider: 'linkedin' }, JANE);
    expect(maxOf({ account: 'acc_2', provider: 'linkedin' })).toEqual([20]);
    await limits.put({}, 'recommended', JANE);
    expect(maxOf({ account: 'acc_2' })).toEqual([60]);
  });

  it('that resets what is not adjusted makes no version', async () => {
    const { limits } = start(createMemoryAdjustments());
    expect(await limits.reset({}, JANE)).toEqual({ revision: '0', version: 0, limits: [] });
    const { revision } = await limits.put({}, ['50/1m'], JANE);
    expect(await limits.reset({ account: 'a' }, JANE)).toEqual({ revision, version: 1, limits: [] });
    expect(await limits.history()).toHaveLength(1);
  });

  it('of a limiter counts on: requests of before are not forgotten', async () => {
    const { limits } = start(createMemoryAdjustments());
    const limiter = createLimiter({ store: createMemoryStore(), limits });
    for (let i = 0; i < 3; i++) await limiter.consume(ACCOUNT);
    await limits.put({ account: 'acc_1' }, ['10/1m'], JANE);
    expect((await limiter.consume(ACCOUNT)).shown).toMatchObject({ max: 10, remaining: 6 });
    await limiter.close();
  });

  it('of one of several processes at once wins, and the others are told what stands', async () => {
    const store = createMemoryAdjustments();
    const processes = Array.from({ length: 4 }, () => start(store).limits);
    const results = await Promise.allSettled(
      Array.from({ length: 16 }, (_, i) =>
        (processes[i % 4] as SharedLimits).put({ account: 'a' }, [`${20 + i}/1m`], { by: `p${i}`, ifVersion: 0 }),
      ),
    );
    const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
    expect(refused).toHaveLength(15);
    for (const error of refused) {
      expect(isHeadgateError(error, 'adjustment_conflict')).toBe(true);
      expect(error).toMatchObject({ target: { account: 'a' }, current: { version: 1 } });
    }
    expect(await processes[0]?.history()).toHaveLength(1);
  });

  it('that the store takes and calls refused, as after a connection that broke off, is made once', async () => {
    const memory = new MemoryAdjustments(monotonicClock);
    let isFirst = true;
    const { limits } = start({
      ...{ durable: false, read: memory.read.bind(memory), restore: memory.restore.bind(memory) },
      ...{ history: memory.history.bind(memory), instances: memory.instances.bind(memory) },
      append(seen, entry) {
        const isStored = memory.append(seen, entry);
        const isTold = !isFirst;
        isFirst = false;
        return isStored && isTold;
      },
    });
    const { version } = await limits.put({ account: 'a' }, ['50/1m'], { ...JANE, ifVersion: 0 });
    expect(version).toBe(1);
    expect(await limits.history()).toHaveLength(1);
  });

  it('that is stored, and not answered in time, is told with its author by the next reading', async () => {
    const memory = new MemoryAdjustments(monotonicClock);
    let isLate = true;
    const append: AdjustmentStore['append'] = async (seen, entry) => {
      const isStored = await memory.append(seen, entry);
      if (!isLate) return isStored;
      isLate = false;
      throw new Error('no answer in time');
    };
    const store = Object.assign(Object.create(memory), {
      append,
      read: memory.read.bind(memory),
      restore: memory.restore.bind(memory),
      history: memory.history.bind(memory),
      instances: memory.instances.bind(memory),
    }) as AdjustmentStore;
    const { limits, maxOf, events } = start(store);
    const change = limits.put({ account: 'acc_1' }, ['50/1m'], { ...JANE, reason: '🙂'.repeat(500) });
    await expect(change).rejects.toThrow('no answer in time');
    await waitFor(() => expect(maxOf()).toEqual([50]));
    expect(events).toMatchObject([{ type: 'changed', entries: [{ version: 1, by: 'jane', source: 'change' }] }]);
    // It is told once: what comes later is not that change.
    await start(memory).limits.put({ account: 'acc_2' }, ['40/1m'], JANE);
    await waitFor(() => expect(limits.state.version).toBe(2));
    const { recent, adjustments } = memory.state as AdjustmentState;
    const [own, second] = recent as [AdjustmentEntry, AdjustmentEntry];
    const head = { version: 2, nonce: 'another' };
    memory.replace({ head, recent: [own, { ...second, ...head }], adjustments });
    await waitFor(() => expect(limits.state.revision).toBe('2.another'));
    expect(events.findLast(({ type }) => type === 'changed')).toMatchObject({ entries: [] });
  });

  it('names the version that it has seen', async () => {
    const { limits } = start(createMemoryAdjustments());
    await limits.put({}, ['50/1m'], { ...JANE, ifVersion: 0 });
    await limits.put({ account: 'a' }, ['50/1m'], JANE);
    await expect(limits.put({}, ['40/1m'], { ...JANE, ifVersion: 0 })).rejects.toThrow(
      'the limit ["default",""] was changed by jane (version 1): look at it, and decide again',
    );
    await limits.reset({}, { ...JANE, ifVersion: 1 });
    await expect(limits.reset({}, { ...JANE, ifVersion: 1 })).rejects.toThrow('["default",""] is not adjusted');
  });
});

describe('an end', () => {
  it('gives back the base in every process, with an entry of its own', async () => {
    const clock = createFakeClock(START);
    const store = createMemoryAdjustments({ clock });
    const [one, other] = [start(store), start(store)];
    await one.limits.put({ account: 'acc_1' }, ['100/1m'], { ...JANE, forMs: 60_000 });
    await waitFor(() => expect(other.maxOf()).toEqual([100]));
    // A process estimates the time of the store between two replies, on its own clock.
    const until = other.limits.list()[0]?.until ?? 0;
    expect(until - START).toBeGreaterThanOrEqual(60_000);
    expect(until - START).toBeLessThan(90_000);
    clock.set(until);
    await waitFor(() => expect([one.maxOf(), other.maxOf()]).toEqual([[60], [60]]));
    await waitFor(async () => expect(await one.limits.history()).toHaveLength(2));
    expect(await one.limits.history({ limit: 1 })).toMatchObject([
      { source: 'expiry', by: 'headgate', version: 2, limits: [{ target: { account: 'acc_1' }, to: undefined }] },
    ]);
  });

  it('comes while the store is away too', async () => {
    const { store, state } = awayable(createMemoryAdjustments());
    const { limits, maxOf } = start(store);
    await limits.put({ account: 'acc_1' }, ['100/1m'], { ...JANE, forMs: 300 });
    state.isAway = true;
    expect(maxOf()).toEqual([100]);
    await waitFor(() => expect(maxOf()).toEqual([60]));
    expect(limits.list()).toEqual([]);
  });

  it('is over for a version: what comes after it begins anew', async () => {
    const clock = createFakeClock(START);
    const { limits } = start(createMemoryAdjustments({ clock }), { refreshMs: 60_000 });
    await limits.put({ account: 'a' }, ['100/1m'], { ...JANE, until: START + 60_000 });
    clock.advance(60_000);
    expect(await limits.put({ account: 'a' }, ['90/1m'], { ...JANE, ifVersion: 0 })).toMatchObject({ version: 2 });
  });
});

describe('without the store', () => {
  it('the base applies, ready() does not wait for ever, and the state says so', async () => {
    const { store, state } = awayable(createMemoryAdjustments());
    state.isAway = true;
    const { limits, maxOf, events } = start(store);
    await limits.ready({ timeoutMs: 30 });
    expect(limits.state).toMatchObject({ source: 'base', revision: '0', ageMs: undefined, durable: false });
    expect(maxOf()).toEqual([60]);
    expect(events[0]).toMatchObject({ type: 'failed', error: new Error('the store is away') });
    await expect(limits.put({}, ['50/1m'], JANE)).rejects.toThrow('the store is away');
    state.isAway = false;
    await limits.ready();
    expect(limits.state).toMatchObject({ source: 'store', ageMs: expect.any(Number) });
  });

  it('the last known adjustments apply', async () => {
    const { store, state } = awayable(createMemoryAdjustments());
    const { limits, maxOf } = start(store);
    await limits.put({ account: 'acc_1' }, ['100/1m'], JANE);
    state.isAway = true;
    await waitFor(() => expect(limits.state.source).toBe('kept'));
    expect([maxOf(), limits.state]).toMatchObject([[100], { adjustments: 1, revision: expect.stringMatching(/^1\./) }]);
    state.isAway = false;
    await waitFor(() => expect(limits.state.source).toBe('store'));
  });

  it('a store that lost everything gets it back, and a new process obeys it', async () => {
    const store = new MemoryAdjustments(monotonicClock);
    const one = start(store);
    await one.limits.put({ account: 'acc_1' }, ['100/1m'], JANE);
    store.replace(undefined);
    await waitFor(() => expect(store.state?.head.version).toBe(1));
    expect(one.events).toContainEqual({ type: 'restored', revision: one.limits.state.revision });
    const late = start(store);
    await late.limits.ready();
    expect(late.maxOf()).toEqual([100]);
  });

  it('another history wins, and what it lacks is told', async () => {
    const store = new MemoryAdjustments(monotonicClock);
    const log = vi.fn();
    const { limits, maxOf, events } = start(store, { logger: log });
    await limits.put({ account: 'acc_1' }, ['100/1m'], JANE);
    const before = store.state;
    await limits.put({ provider: 'linkedin' }, ['10/1m'], JANE);
    const entry = { ...(before?.recent[0] as object), version: 2, nonce: 'other', by: 'joe', limits: [] };
    // One step: an old server was promoted, and another process has written to it.
    store.replace(
      before && { ...before, head: { version: 2, nonce: 'other' }, recent: [...before.recent, entry as never] },
    );
    await waitFor(() => expect(limits.state.revision).toBe('2.other'));
    expect(maxOf({ provider: 'linkedin', account: 'b' })).toEqual([20]);
    expect(events.find(({ type }) => type === 'forked')).toMatchObject({ lost: [{ version: 2, by: 'jane' }] });
    expect(log).toHaveBeenCalledWith(
      'headgate: the change 2 by jane is gone, the store has another history: limits.providers["linkedin"].allMethods',
      undefined,
    );
  });
});

describe('many adjustments', () => {
  const MANY = 5_000;
  const author = { at: START, by: 'jane' };
  const stateOf = (nonce: string, max: number) => ({
    head: { version: 1, nonce },
    recent: [{ version: 1, nonce, ...author, source: 'change' as const, limits: [] }],
    adjustments: Array.from({ length: MANY }, (_, i) => ({
      ...{ target: { account: `acc_${i}` }, windows: [{ max, durationMs: 60_000 }], version: 1, ...author },
    })),
  });
  const nextTurn = () => new Promise((resolve) => setImmediate(resolve));
  /** What the first and the last account had while the adjustments were taken over. */
  const watch = async (maxOf: (subject: object) => number[], isDone: () => boolean, onTurn = (_: number) => {}) => {
    const seen: string[] = [];
    while (!isDone()) {
      await nextTurn();
      seen.push([0, MANY - 1].flatMap((i) => maxOf({ account: `acc_${i}` })).join());
      onTurn(seen.length);
    }
    return seen;
  };

  it('are taken over all at once, and requests in between are decided', async () => {
    const store = new MemoryAdjustments(monotonicClock);
    store.replace(stateOf('one', 100));
    const { limits, maxOf } = start(store);
    const isReady = limits.ready().then(() => limits.state.source);
    const first = await watch(maxOf, () => limits.state.source !== 'base');
    expect(first.length).toBeGreaterThan(3);
    expect(new Set(first)).toEqual(new Set(['60,60', '100,100']));
    expect(await isReady).toBe('store');
    store.replace(stateOf('other', 200));
    await nextTurn();
    const second = await watch(maxOf, () => limits.state.revision === '1.other');
    expect(new Set(second)).toEqual(new Set(['100,100', '200,200']));
    expect(limits.state.adjustments).toBe(MANY);
  });

  it('are right if the base is replaced meanwhile', async () => {
    const store = new MemoryAdjustments(monotonicClock);
    const { limits, maxOf } = start(store, { base: () => ({ allMethods: ['30/1m'] }) });
    await limits.put({ account: 'before' }, ['31/1m'], JANE);
    const state = stateOf('other', 200);
    store.replace({
      ...state,
      adjustments: [{ ...(state.adjustments[0] as object), target: {} } as never, ...state.adjustments],
    });
    const isDone = () => limits.state.revision === '1.other';
    const onTurn = (turn: number) => {
      if (turn === 2) void limits.rebase(BASE);
    };
    expect(new Set(await watch(maxOf, isDone, onTurn))).toContain('200,200');
    expect([maxOf({ account: 'before' }), maxOf({ account: 'none' })]).toEqual([[200], [200]]);
    expect(limits.state).toMatchObject({ adjustments: MANY + 1, unusable: 0 });
  });
});

describe('what could be a mistake', () => {
  it.each([
    [{}, [], /^limits\.default\.allMethods would be removed for every account that it applies to\. Pass confirm: true/],
    [{ provider: 'linkedin' }, ['0/1m'], /would reject every request of every account/],
    [
      { account: 'a' },
      ['9/1s', '0/1m'],
      /^limits\.accounts\["a"\]\.allMethods would reject every request of the account/,
    ],
    [{ plan: 'trial' }, ['50/1m'], /limits\.plans does not have "trial": its requests fail once no limit of it is/],
    [{}, ['601/1m'], /would allow 10 times more: 60\/1m would become 601\/1m\./],
    [{ account: 'a' }, ['5/1m'], /would allow 12 times less/],
    [{}, ['60/1s'], /would allow 60 times more/],
  ])('needs to be confirmed: %j %j', async (target, windows, message) => {
    const { limits } = start(createMemoryAdjustments());
    const [preview] = limits.preview([{ target, windows }]);
    expect(preview?.warnings).toHaveLength(1);
    await expect(limits.put(target, windows, JANE)).rejects.toThrow(message);
    expect(limits.list()).toEqual([]);
    await limits.put(target, windows, { ...JANE, confirm: true });
    expect(limits.list()).toHaveLength(1);
  });

  it.each([
    [{ account: 'a' }, []],
    [{}, ['600/1m']],
    [{}, ['6/1m']],
  ])('is not: %j %j', async (target, windows) => {
    const { limits } = start(createMemoryAdjustments());
    await limits.put(target, windows, JANE);
    expect(limits.list()).toHaveLength(1);
  });
});

it('a plan that only an adjustment has does not end with it by surprise', async () => {
  const plans = { pro: {}, team: { allMethods: ['90/1m'] } };
  const { limits, maxOf } = start(createMemoryAdjustments(), { base: { ...BASE, plans } });
  await limits.put({ plan: 'trial' }, ['50/1m'], { ...JANE, confirm: true });
  expect(maxOf({ plan: 'trial' })).toEqual([50]);
  await expect(limits.reset({ plan: 'trial' }, JANE)).rejects.toThrow(/limits\.plans does not have "trial"/);
  await limits.reset({ plan: 'trial' }, { ...JANE, confirm: true });
  expect(() => maxOf({ plan: 'trial' })).toThrow(/unknown plan "trial"/);
  // What is listed stays, also without limits of its own.
  await limits.put({ plan: 'pro' }, ['50/1m'], JANE);
  await limits.reset({ plan: 'pro' }, JANE);
  expect([maxOf({ plan: 'pro' }), maxOf({ plan: 'team' })]).toEqual([[60], [90]]);
  const { limits: asked } = start(createMemoryAdjustments(), { base: () => ({ allMethods: ['60/1m'] }) });
  await asked.put({ plan: 'trial' }, ['50/1m'], JANE);
  await asked.reset({ plan: 'trial' }, JANE);
});

describe('a preview', () => {
  it('shows what applies before and after, and changes nothing', async () => {
    const { limits } = start(createMemoryAdjustments());
    await limits.put({ provider: 'linkedin' }, ['10/1m'], JANE);
    const windows = (max: number) => [{ max, durationMs: 60_000 }];
    expect(
      limits.preview([
        { target: { provider: 'linkedin' }, windows: 'recommended' },
        { target: { account: 'a' }, windows: ['70/1m'] },
        { target: { route: 'GET /emails' }, windows: ['5/1m'] },
      ]),
    ).toMatchObject([
      { before: windows(10), after: windows(20), adjustment: { version: 1 }, warnings: [] },
      { before: windows(60), after: windows(70), adjustment: undefined, warnings: [] },
      { before: undefined, after: windows(5), adjustment: undefined, warnings: [] },
    ]);
    expect(limits.list()).toHaveLength(1);
  });

  const LAYERS = {
    default: { allMethods: ['60/1m'], routes: { 'GET /emails': ['9/1m'] } },
    plans: { free: {}, pro: { allMethods: ['600/1m'] } },
    providers: { linkedin: { allMethods: ['20/1m'] }, imap: { routes: { 'GET /emails': ['5/1m'] } } },
  };
  const SUBJECTS = [undefined, 'linkedin', 'imap', 'unlisted'].flatMap((provider) =>
    [undefined, 'free', 'pro'].map((plan) => ({ provider, plan })),
  );

  it.each(SUBJECTS)(
    'of an account says what its provider and plan say, as an explanation does: %j',
    async (subject) => {
      const { limits } = start(createMemoryAdjustments(), { base: LAYERS });
      await limits.put({ provider: 'linkedin' }, ['10/1m'], JANE);
      const explained = () => limits.explain({ ...ACCOUNT, ...subject }).map(({ applies }) => applies?.windows);
      const targets = [{ account: 'acc_1', route: 'GET /emails' }, { account: 'acc_1' }];
      const previewed = (windows: string[] | 'recommended') =>
        limits.preview(targets.map((target) => ({ target, windows, subject })));
      const initial = explained();
      expect(previewed('recommended').map(({ before, after }) => [before, after])).toEqual(
        initial.map((one) => [one, one]),
      );
      const adjusting = previewed(['30/1m']);
      expect(adjusting.map(({ before }) => before)).toEqual(initial);
      await limits.change(
        targets.map((target) => ({ target, windows: ['30/1m'], subject })),
        { ...JANE, confirm: true },
      );
      expect(adjusting.map(({ after }) => after)).toEqual(explained());
      expect(previewed('recommended').map(({ before, after }) => [before, after])).toEqual(
        explained().map((now, i) => [now, initial[i]]),
      );
    },
  );

  it('of an account warns of a change by more than ten times of what its provider and plan say', async () => {
    const { limits } = start(createMemoryAdjustments(), { base: LAYERS });
    const put = (max: number, subject?: object) =>
      limits.put({ account: 'acc_1' }, [`${max}/1m`], { ...JANE, subject });
    await expect(put(300, { provider: 'linkedin' })).rejects.toThrow('15 times more: 20/1m would become 300/1m.');
    await expect(put(20, { plan: 'pro' })).rejects.toThrow('30 times less: 600/1m would become 20/1m.');
    await put(300, { plan: 'pro' });
  });
});

describe('an explanation', () => {
  it('names for each limit the layer that has it, and what it hides', async () => {
    const { limits } = start(createMemoryAdjustments());
    await limits.put({ provider: 'linkedin' }, ['10/1m'], JANE);
    await limits.put({ account: 'acc_1', route: 'GET /emails' }, ['5/1m'], JANE);
    const subject = { ...ACCOUNT, provider: 'linkedin', limits: ['7/1m'] };
    const at = (layer: string, name: string, max: number, version?: number) => ({
      ...{ layer, name, windows: [{ max, durationMs: 60_000 }] },
      adjustment: version === undefined ? undefined : expect.objectContaining({ version }),
    });
    expect(limits.explain(subject)).toEqual([
      { limit: 'route', applies: at('account', 'acc_1', 5, 2), hides: [at('route', '', 7)] },
      {
        limit: 'all-methods',
        applies: at('provider', 'linkedin', 10, 1),
        hides: [at('provider', 'linkedin', 20), at('default', '', 60)],
      },
    ]);
    expect(limits.explain({ account: 'b', route: 'x' })[0]).toEqual({ limit: 'route', applies: undefined, hides: [] });
    const ofOthers = { ...subject, account: undefined };
    expect(limits.explain(ofOthers)).toEqual(limits.explain({ ...subject, account: 'another' }));
    expect(() => limits.explain({ ...ACCOUNT, plan: 'none' })).toThrow(/unknown plan "none"/);
  });
});

describe('the history', () => {
  it('is that of one limit, if it is asked for, and has pages', async () => {
    const { limits } = start(createMemoryAdjustments());
    for (let max = 50; max < 60; max++) await limits.put(max % 2 === 0 ? {} : { account: 'a' }, [`${max}/1m`], JANE);
    const versions = async (query: object) => (await limits.history(query)).map(({ version }) => version);
    expect(await versions({ limit: 3 })).toEqual([10, 9, 8]);
    expect(await versions({ limit: 2, before: 8 })).toEqual([7, 6]);
    expect(await versions({ target: { account: 'a' }, limit: 3, before: 10 })).toEqual([8, 6, 4]);
    expect(await versions({ target: { provider: 'x' } })).toEqual([]);
  });

  it('is not read to its end for one limit, if a store has very much of it', async () => {
    const store = createMemoryAdjustments();
    const { limits } = start(store);
    await limits.ready();
    let pages = 0;
    store.history = (before = 1e9, limit) => {
      pages++;
      return Array.from({ length: limit }, (_, i) => ({ version: before - 1 - i, limits: [] }) as never);
    };
    expect(await limits.history({ target: { account: 'a' } })).toEqual([]);
    expect(pages).toBe(40);
  });
});

describe('another base', () => {
  it('keeps the adjustments', async () => {
    const { limits, maxOf } = start(createMemoryAdjustments());
    await limits.put({ account: 'acc_1' }, ['100/1m'], JANE);
    await limits.rebase({ default: { allMethods: ['30/1m'] } });
    expect([maxOf(), maxOf({ account: 'b', provider: 'linkedin' })]).toEqual([[100], [30]]);
    await expect(limits.rebase({} as never)).rejects.toThrow(/^base/);
    expect(maxOf({ account: 'b' })).toEqual([30]);
    await limits.reset({ account: 'acc_1' }, JANE);
    expect(maxOf()).toEqual([30]);
  });

  it('keeps adjustments that come while it is prepared', async () => {
    const store = new MemoryAdjustments(monotonicClock);
    const { limits, maxOf } = start(store);
    await limits.put({ account: 'acc_1' }, ['100/1m'], JANE);
    const rebased = limits.rebase({ default: { allMethods: ['30/1m'] } });
    await Promise.all([rebased, limits.put({ account: 'acc_2' }, ['90/1m'], JANE)]);
    expect([maxOf(), maxOf({ account: 'acc_2' }), maxOf({ account: 'b' })]).toEqual([[100], [90], [30]]);
  });

  it('S22: says which adjustments hide a change of it, once per change', async () => {
    const accounts = (max: number) => ({ acc_1: { allMethods: [`${max}/1m`] }, acc_2: { allMethods: ['5/1m'] } });
    const logs: string[] = [];
    const { limits, events, maxOf } = start(createMemoryAdjustments(), {
      base: { ...BASE, accounts: accounts(20) },
      logger: (message) => logs.push(message),
    });
    await limits.put({ account: 'acc_1' }, ['40/1m'], JANE);
    await limits.put({ account: 'acc_2' }, ['6/1m'], JANE);
    const hidden = () => events.flatMap((event) => (event.type === 'hidden' ? [event.adjustments] : []));
    await limits.rebase({ ...BASE, accounts: accounts(30) });
    await limits.rebase({ ...BASE, accounts: accounts(30) });
    expect(hidden()).toEqual([[expect.objectContaining({ target: { account: 'acc_1' }, by: 'jane', version: 1 })]]);
    expect(logs).toEqual([
      'headgate: the base changed beneath adjustments, which go on to apply: limits.accounts["acc_1"].allMethods by jane',
    ]);
    expect(maxOf()).toEqual([40]);
    await limits.reset({ account: 'acc_1' }, JANE);
    expect(maxOf()).toEqual([30]);
    await limits.rebase({ ...BASE, accounts: accounts(90) });
    expect(hidden()).toHaveLength(1);
  });

  it('S22: that is a function is heard when it returns other limits than before for an adjusted account', async () => {
    let max = 20;
    const base = ({ route }: { route?: string | undefined }) => [route === 'GET /other' ? '7/1m' : `${max}/1m`];
    const { limits, events, maxOf } = start(createMemoryAdjustments(), { base });
    await limits.put({ account: 'acc_1' }, ['40/1m'], JANE);
    const hidden = () => events.filter(({ type }) => type === 'hidden');
    maxOf();
    maxOf({ route: 'GET /other' });
    maxOf();
    expect(hidden()).toEqual([]);
    max = 30;
    expect([maxOf(), maxOf(), maxOf({ account: 'acc_2' })]).toEqual([[40], [40], [30]]);
    expect(hidden()).toEqual([{ type: 'hidden', adjustments: [expect.objectContaining({ by: 'jane' })] }]);
    await limits.put({ account: 'acc_2' }, ['50/1m'], JANE);
    await limits.rebase(base);
    maxOf({ account: 'acc_2' });
    max = 31;
    maxOf({ account: 'acc_2' });
    expect(hidden()).toHaveLength(2);
  });

  it('that is a function takes no adjustment of the default limits, and says so', async () => {
    const { limits, maxOf } = start(createMemoryAdjustments());
    await limits.put({}, ['50/1m'], JANE);
    await limits.put({ account: 'acc_1' }, ['100/1m'], JANE);
    await limits.rebase(() => SET);
    expect([maxOf(), maxOf({ account: 'b' })]).toEqual([[100], [40]]);
    expect(limits.state).toMatchObject({ adjustments: 1, unusable: 1 });
    await expect(limits.put({}, ['30/1m'], JANE)).rejects.toThrow(/must name account, provider or plan/);
    await limits.rebase(BASE);
    expect([maxOf({ account: 'b' }), limits.state.unusable]).toEqual([[50], 0]);
  });
  const SET = { allMethods: ['40/1m'] };
});

describe('bad input', () => {
  const { limits } = start(createMemoryAdjustments());
  opened.pop();
  const put =
    (target: object, windows: unknown, options: object = {}) =>
    () =>
      limits.put(target, windows as never, { ...JANE, ...options });

  it.each<[() => Promise<unknown>, RegExp]>([
    [put({ tenant: 'a' }, []), /target\.tenant: unknown option/],
    [put({ account: 'a', provider: 'b' }, []), /must name only one of account, provider and plan/],
    [put({ account: '' }, []), /target\.account: must have 1 to 1024 characters/],
    [put({ account: 'a'.repeat(1_025) }, []), /target\.account: must have 1 to 1024/],
    [put({ account: 7 }, []), /target\.account: must be a string, got 7/],
    [put({}, ['60/1m', '30/60s']), /limits\.default\.allMethods: two windows of one limit need distinct durations/],
    [put({ account: 'a' }, ['-1/1m']), /limits\.accounts\["a"\]\.allMethods\[0\]: a window is max\/duration/],
    [put({}, '60/1m'), /a limit is an array of windows/],
    [
      put(
        {},
        Array.from({ length: 65 }, (_, i) => `1/${i + 1}s`),
      ),
      /must have 64 windows at most/,
    ],
    [put({}, ['50/1m'], { by: '' }), /by: must be 1 to 200 printable characters/],
    [put({}, ['50/1m'], { by: 'a\nb' }), /by: must be 1 to 200 printable/],
    [put({}, ['50/1m'], { reason: 'a'.repeat(501) }), /reason: must be 1 to 500/],
    [put({}, ['50/1m'], { forMs: 0 }), /forMs: must be an integer of milliseconds up to a year/],
    [put({}, ['50/1m'], { until: 5 }), /until: must be milliseconds since 1970, in the future/],
    [put({}, ['50/1m'], { until: 5, forMs: 5 }), /until: must not be given beside forMs/],
    [put({ account: 'a' }, ['50/1m'], { subject: { tier: 'pro' } }), /subject\.tier: unknown option/],
    [put({ account: 'a' }, ['50/1m'], { subject: { provider: 7 } }), /subject\.provider: must be a string, got 7/],
    [put({}, ['50/1m'], { subject: {} }), /subject: must only be given with target\.account/],
    [put({}, ['50/1m'], { ifVersion: -1 }), /ifVersion: must be the version of an adjustment/],
    [put({}, ['50/1m'], { confirm: 'yes' }), /confirm: must be a boolean/],
    [put({}, ['50/1m'], { why: 'x' }), /options\.why: unknown option/],
    [() => limits.put({}, ['50/1m'], undefined as never), /by: must be 1 to 200/],
    [() => limits.change([], JANE), /changes: must be a list of 1 to 100 changes/],
    [() => limits.change(Array(101).fill({ target: {}, windows: [] }), JANE), /1 to 100 changes/],
    [
      () =>
        limits.change(
          [1, 2].map(() => ({ target: {}, windows: [] })),
          JANE,
        ),
      /must name each limit only once/,
    ],
    [() => limits.history({ limit: 0 }), /limit: must be an integer from 1 to 1000/],
    [() => limits.history({ befor: 5 } as never), /^query\.befor: unknown option \(expected before, limit or target\)/],
    [() => limits.history(5 as never), /^query: must be a plain object/],
    [() => limits.applied('x'), /revision: must be that of a change/],
  ])('is refused, and changes nothing: %s %s', async (call, message) => {
    await expect((async () => call())()).rejects.toThrow(message);
    expect(limits.state.revision).toBe('0');
  });

  it('a hundred names that are special in JavaScript are only names', async () => {
    const { limits: own, maxOf } = start(createMemoryAdjustments());
    for (const account of ['__proto__', 'constructor', 'toString', '@head'])
      await own.put({ account }, ['61/1m'], JANE);
    expect(maxOf({ account: '__proto__' })).toEqual([61]);
    expect(own.list()).toHaveLength(4);
  });

  it.each<[object, RegExp]>([
    [{ base: {} }, /^base/],
    [{ base: BASE, adjustments: {} }, /adjustments: must have read\(\), as createMemoryAdjustments\(\) does/],
    [{ refreshMs: 5 }, /refreshMs: must be an integer from 10 to 60000/],
    [{ maxAdjustments: 0 }, /maxAdjustments: must be an integer from 1 to 100000/],
    [{ instance: '' }, /instance: must be 1 to 200 characters/],
    [{ onevent: 1 }, /options\.onevent: unknown option/],
  ])('in the options is an error: %j', (options, message) => {
    expect(() => start(createMemoryAdjustments(), options)).toThrow(message);
  });
});

it('there are only so many adjustments', async () => {
  const { limits } = start(createMemoryAdjustments(), { maxAdjustments: 2 });
  await limits.put({ account: 'a' }, ['61/1m'], JANE);
  await limits.put({ account: 'b' }, ['61/1m'], JANE);
  await expect(limits.put({ account: 'c' }, ['61/1m'], JANE)).rejects.toThrow(/there may be 2 adjustments at most/);
  await limits.put({ account: 'b' }, ['62/1m'], JANE);
  await limits.reset({ account: 'a' }, JANE);
  await limits.put({ account: 'c' }, ['61/1m'], JANE);
  expect(limits.list()).toHaveLength(2);
});

it('a limiter says where its shared limits are changed', () => {
  const { limits } = start(createMemoryAdjustments());
  const limiter = createLimiter({ store: createMemoryStore(), limits });
  expect(() => limiter.adjust({}, ['5/1m'])).toThrow(/limits: must be changed at their source, as with put\(\)/);
});

it('closing stops reading, and the last known adjustments go on to apply', async () => {
  const store = createMemoryAdjustments();
  const read = vi.spyOn(store, 'read');
  const { limits, maxOf } = start(store);
  await limits.put({ account: 'acc_1' }, ['100/1m'], JANE);
  await limits.close();
  await limits.close();
  read.mockClear();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(read).not.toHaveBeenCalled();
  expect(maxOf()).toEqual([100]);
  await expect(limits.put({}, ['50/1m'], JANE)).rejects.toThrow(/the shared limits was closed/);
});

it('a listener that throws breaks nothing', async () => {
  const log = vi.fn();
  const onEvent = () => {
    throw new Error('mine');
  };
  const { limits, maxOf } = start(createMemoryAdjustments(), { onEvent, logger: log });
  await limits.put({ account: 'acc_1' }, ['100/1m'], JANE);
  expect(maxOf()).toEqual([100]);
  expect(log).toHaveBeenCalledWith('headgate: the listener onEvent failed', new Error('mine'));
});
