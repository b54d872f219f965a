/**
 * S27: whatever a candidate's store does, the answers over HTTP are the same bytes as without a candidate. Only a store
 * that blocks the event loop, or fills its queue for ever, is out of scope: no code in the same thread can bound it.
 */
import { once } from 'node:events';
import { openRaw, rawRequest } from 'headgate-testbed/raw-http';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { LimitStore, ResetTarget } from '../../src/core/ports.ts';
import type { WindowSet } from '../../src/core/window-set.ts';
import { createLimiter } from '../../src/limits/limiter.ts';
import type { Limiter } from '../../src/limits/ports.ts';
import { WindowSets } from '../../src/limits/window-sets.ts';
import { withShadow } from '../../src/shadow/shadow.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';
import { keyedServers } from '../support/keyed-server.ts';

const LIMITS = { allMethods: ['4/1m'], routes: { 'POST /once': ['1/1m'] } };
const { serve } = keyedServers();
const unhandled = vi.fn();
const FATAL = ['unhandledRejection', 'uncaughtException'] as const;
beforeAll(() => FATAL.forEach((name) => void process.on(name, unhandled)));
afterAll(() => FATAL.forEach((name) => void process.off(name, unhandled)));
afterEach(() => void vi.restoreAllMocks());

const post = (path: string, account: string, key?: string, body = '{"a":1}') =>
  rawRequest(
    'POST',
    path,
    { 'x-account': account, 'content-type': 'application/json', ...(key && { 'idempotency-key': key }) },
    body,
  );

/** What a client sends on one connection, and between it what the operator of the server does. */
const TRAFFIC: (string | ((limiter: Limiter) => Promise<unknown>))[] = [
  ...Array.from({ length: 5 }, () => post('/send', 'acc_1')),
  post('/once', 'acc_2', 'k1'),
  post('/once', 'acc_2', 'k1'),
  post('/once', 'acc_2', 'k1', '{"a":2}'),
  post('/once', 'acc_2', 'k2'),
  ...Array.from({ length: 6 }, () => post('/refunded', 'acc_3')),
  post('/refunded', 'acc_3', 'k3'),
  post('/refunded', 'acc_3', 'k3'),
  ...Array.from({ length: 3 }, () => post('/dear', 'acc_4')),
  post('/failing', 'acc_5', 'k4'),
  post('/failing', 'acc_5', 'k4'),
  post('/send', 'acc_6', 'a'.repeat(256)),
  rawRequest('GET', '/send'),
  (limiter) => limiter.reset({ account: 'acc_1' }),
  (limiter) => limiter.block({ account: 'acc_4' }, { forMs: 1_000, reason: 'INC-12' }),
  post('/send', 'acc_1'),
  post('/send', 'acc_4', 'k5'),
];

let limiterOfNow: Limiter;

/** @returns the bytes that the client has got, without the date, and what the candidate has counted */
async function bytesOf(isSynchronous: boolean, shadowStore: LimitStore | undefined) {
  const clock = createFakeClock(1_000_000);
  const memory = createMemoryStore({ clock });
  const later: LimitStore = Object.assign(createMemoryStore({ clock }), {
    synchronous: false,
    consume: async (...given: Parameters<typeof memory.consume>) => memory.consume(...given),
    settle: async (...given: Parameters<typeof memory.settle>) => memory.settle(...given),
    reset: async (target: ResetTarget) => memory.reset(target),
    block: async (...given: Parameters<typeof memory.block>) => memory.block(...given),
  });
  // One source for both, so that both have the same plan objects.
  const limits = new WindowSets(LIMITS);
  const current = createLimiter({ store: isSynchronous ? memory : later, limits, validate: false });
  const shadowed = shadowStore && withShadow(current, { limits, store: shadowStore, timeoutMs: 10 });
  const limiter = shadowed ?? current;
  limiterOfNow = limiter;
  let ids = 0;
  vi.spyOn(crypto, 'randomUUID').mockImplementation(() => `00000000-0000-4000-8000-${++ids}`);
  const server = await serve(
    ({ url }, response) => {
      if (url === '/failing') response.statusCode = 500;
      if (url === '/refunded') response.setHeader('x-cost', 0);
      if (url === '/dear') response.setHeader('x-cost', 3);
      response.end(`answer of ${url}, after ${ids} ids`);
    },
    { gate: { limiter, finalCost: ({ header }) => Number(header('x-cost') ?? 1) } },
  );
  const connection = await openRaw(server.port);
  let sent = 0;
  for (const act of TRAFFIC) {
    if (typeof act !== 'string') {
      await act(limiter);
      continue;
    }
    connection.write(act);
    sent++;
    while (connection.replies().length < sent) await once(connection.socket, 'data');
    // The candidate hears of each request before the next one.
    await new Promise((resolve) => setImmediate(resolve));
  }
  const statuses = connection.replies().map(({ status }) => status);
  connection.destroy();
  await shadowed?.shadow.idle();
  const total = shadowed?.shadow.figures().total;
  await limiter.close();
  return { bytes: connection.received().replace(/^Date: .*\r\n/gm, ''), statuses, total };
}

const without = new Map<boolean, ReturnType<typeof bytesOf>>();
function bytesWithout(isSynchronous: boolean) {
  const known = without.get(isSynchronous) ?? bytesOf(isSynchronous, undefined);
  without.set(isSynchronous, known);
  return known;
}

/** A store of which all methods do the same. */
function storeOf(act: (...given: never[]) => unknown): LimitStore {
  const method = (...given: unknown[]) => act(...(given as never[])) as never;
  return { synchronous: false, consume: method, peek: method, settle: method, reset: method, close: method };
}

const trap = (): never => {
  throw new Error('trap');
};
const evil = new Proxy({}, { get: trap, has: trap, getPrototypeOf: trap, ownKeys: trap });
/** What was accepted at first is unreadable afterwards. */
function fickle(account: string, route: string) {
  let reads = 0;
  return {
    ...{ account, route, degraded: false },
    get accepted() {
      return ++reads === 1 || trap();
    },
  };
}
const ofAnother = createMemoryStore();
const thenable = (then: (ok: (value: unknown) => void, no: (value: unknown) => void) => void) => ({ then });
const lie = (rest: object) => (account: string, route: string) => ({ account, route, degraded: false, ...rest });

/** Stores that do not decide, so no outcome is counted. */
const SILENT: [what: string, act: (...given: never[]) => unknown][] = [
  ['throws', trap],
  [
    'throws nothing',
    () => {
      throw undefined;
    },
  ],
  ['rejects', () => Promise.reject(new Error('down'))],
  ['rejects later', () => new Promise((_, reject) => setTimeout(reject, 3, evil))],
  ['hangs', () => new Promise(() => {})],
  ['returns nothing', () => undefined],
  ['returns null', () => null],
  ['resolves to nothing', async () => undefined],
  ['returns a number that is none', () => Number.NaN],
  ['returns a wrong shape', lie({ accepted: 'yes' })],
  ['accepts with NaN', lie({ accepted: Number.NaN })],
  ['returns a decision of the failure policy', lie({ accepted: true, degraded: true })],
  ['rejects without a window', lie({ accepted: false })],
  ['rejects by a limit that does not exist', lie({ accepted: false, shown: { limit: '__proto__' } })],
  [
    'decides about another account',
    (_account, route, plan, cost) => (plan === undefined ? false : ofAnother.consume('acc_9', route, plan, cost)),
  ],
  ['returns what cannot be read', () => evil],
  [
    'resolves to what cannot be read',
    async () => ({
      ...lie({})('', ''),
      ...Object.create(null),
      get accepted() {
        return trap();
      },
    }),
  ],
  ['returns a promise that throws', () => thenable(trap)],
  ['returns a promise that hangs', () => thenable(() => {})],
  [
    'returns a promise that answers twice',
    () =>
      thenable((ok, no) => {
        ok(1);
        no(2);
        ok(3);
      }),
  ],
  [
    'returns a promise that answers, rejects later, and throws',
    () =>
      thenable((ok, no) => {
        setTimeout(() => no(new Error('late')), 1);
        ok(Promise.reject(new Error('inner')));
        trap();
      }),
  ],
];

const OWN_ACCOUNT = 'an account of the store';
/** Uses the limiter that it is the shadow of. Its own requests are checked as well. */
function askAgain(account: string, route: string, windowSet: WindowSet | undefined) {
  if (windowSet === undefined || account === OWN_ACCOUNT) return lie({ accepted: true })(account, route);
  const subject = { account: OWN_ACCOUNT, route };
  void limiterOfNow.consume(subject).then((decision) => limiterOfNow.refund(decision));
  void limiterOfNow.peek({ account, route });
  return lie({ accepted: true })(account, route);
}

/** Stores that decide, and lie about it. */
const LYING: [what: string, act: (...given: never[]) => unknown][] = [
  [
    'rejects everything, with counters that are no numbers',
    lie({ accepted: false, shown: { limit: 'route', max: Number.NaN, remaining: Number.NaN, resetMs: Number.NaN } }),
  ],
  [
    'accepts everything, with counters that no window has',
    lie({
      accepted: true,
      takeCharge: trap,
      cost: -1,
      impossible: 1n,
      trace: [Number.POSITIVE_INFINITY, -0, { startedAt: -1 }],
      shown: { limit: 'route', max: -1, remaining: Number.POSITIVE_INFINITY, resetMs: 1e308 },
    }),
  ],
  [
    'writes to the plan that it was given',
    (account: string, route: string, windowSet: WindowSet | undefined) => {
      windowSet?.maxes.fill(0);
      windowSet?.durations.fill(1);
      for (const each of windowSet === undefined ? [] : [windowSet, windowSet.windows, ...windowSet.windows])
        for (const name of Reflect.ownKeys(each)) Reflect.set(each, name, 0);
      return lie({ accepted: true })(account, route);
    },
  ],
  ['uses the limiter while it decides', askAgain],
  [
    'uses the limiter while it decides in a promise',
    async (...given: Parameters<typeof askAgain>) => askAgain(...given),
  ],
  ['accepts everything, and then cannot be read', fickle],
  ['accepts everything in a promise, and then cannot be read', async (account, route) => fickle(account, route)],
];

for (const isSynchronous of [true, false])
  describe(`a hostile store changes no byte: the limiter's store is ${isSynchronous ? '' : 'not '}synchronous`, () => {
    it('the traffic has answers of all kinds', async () => {
      const { statuses, bytes } = await bytesWithout(isSynchronous);
      expect(new Set(statuses)).toEqual(new Set([200, 409, 422, 429, 500]));
      expect(bytes.match(/idempotency-replayed: true/gi)).toHaveLength(3);
      expect(statuses.filter((status) => status === 429)).toHaveLength(4);
    });

    it.each(SILENT)('%s', async (_what, act) => {
      const { bytes, total } = await bytesOf(isSynchronous, storeOf(act));
      expect(bytes).toBe((await bytesWithout(isSynchronous)).bytes);
      // Only the request that a block rejects has an outcome, because no store decides about it.
      expect(total).toMatchObject({ none: 0, onlyCandidate: 0, onlyCurrent: 0 });
      expect(total?.both).toBeLessThanOrEqual(1);
      expect((total?.failed ?? 0) + (total?.dropped ?? 0)).toBeGreaterThanOrEqual(15);
      expect(unhandled).not.toHaveBeenCalled();
    });

    it('has methods that cannot be read after the start', async () => {
      let reads = 0;
      const get = (store: LimitStore, name: keyof LimitStore) => (++reads > 10 ? trap() : store[name]);
      const { bytes, total } = await bytesOf(
        isSynchronous,
        new Proxy(storeOf(trap), { get } as ProxyHandler<LimitStore>),
      );
      expect(bytes).toBe((await bytesWithout(isSynchronous)).bytes);
      expect([total?.none, reads > 20]).toEqual([0, true]);
      expect(unhandled).not.toHaveBeenCalled();
    });

    it.each(LYING)('%s', async (_what, act) => {
      const { bytes, total } = await bytesOf(isSynchronous, storeOf(act));
      expect(bytes).toBe((await bytesWithout(isSynchronous)).bytes);
      expect((total?.none ?? 0) + (total?.onlyCandidate ?? 0)).toBeGreaterThanOrEqual(15);
      expect(unhandled).not.toHaveBeenCalled();
    });
  });
