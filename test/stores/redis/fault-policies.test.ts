/**
 * What `admit` and `refuse` make of a server that answers with errors: in time, named for what it is, and over when the server is well again
 * (S17). `local` has fault-answers.test.ts; servers that do not answer at all have faults.test.ts.
 */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseLimit } from '../../../src/core/limit.ts';
import { createPlan } from '../../../src/core/plan.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';
import { CLIENTS, type ConnectedClient } from '../../support/redis-clients.ts';
import { Caller, HEALTHY } from '../../support/redis-load.ts';
import { type RedisServer, startRedis, until } from '../../support/redis-server.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts';

const DEADLINE_MS = 250;
const SLACK_MS = 1_000;
const MAX = 1_000;
const CHECKS = 8;
const NAMES = Object.keys(CLIENTS);
const POLICIES = ['admit', 'refuse'] as const;
const plan = createPlan([], parseLimit([`${MAX}/1h`]));

let server: RedisServer;
let admin: Redis;
/** In the order of their names, each with a wire of its own. */
let proxies: TcpProxy[];
let clients: ConnectedClient[];
beforeAll(async () => {
  server = await startRedis();
  admin = new Redis({ port: server.port, host: '127.0.0.1' });
  await admin.ping();
  proxies = await Promise.all(NAMES.map(() => startTcpProxy(server.port)));
  clients = await Promise.all(Object.values(CLIENTS).map((connect, i) => connect((proxies[i] as TcpProxy).port)));
});
afterAll(async () => {
  for (const { disconnect } of clients) disconnect();
  admin.disconnect();
  await Promise.all(proxies.map((proxy) => proxy.close()));
  await server.stop();
});

interface Fault {
  readonly name: string;
  /** @param key the record that is asked for */
  begin(key: string): unknown;
  end(key: string): unknown;
  /** Checks that it spoils: all while it lasts, or one alone. */
  readonly spoils: number;
  readonly says: RegExp;
}

const FAULTS: readonly Fault[] = [
  {
    name: 'maxmemory reached (OOM)',
    begin: () => admin.config('SET', 'maxmemory', '1'),
    end: () => admin.config('SET', 'maxmemory', '0'),
    spoils: CHECKS,
    says: /OOM/,
  },
  {
    name: 'a read-only replica (READONLY)',
    begin: () => admin.call('REPLICAOF', '127.0.0.1', '1'),
    end: () => admin.call('REPLICAOF', 'NO', 'ONE'),
    spoils: CHECKS,
    says: /READONLY|MASTERDOWN/,
  },
  {
    name: 'a record of another type',
    begin: (key) => admin.multi().del(key).rpush(key, 'x').exec(),
    end: (key) => admin.del(key),
    spoils: CHECKS,
    says: /the record .* is not one of headgate's/,
  },
  {
    name: 'a record with garbage in it',
    begin: (key) => admin.set(key, 'garbage'),
    end: (key) => admin.del(key),
    spoils: CHECKS,
    says: /the record .* is not one of headgate's/,
  },
  {
    name: 'a connection cut in mid-reply',
    begin: () => {
      for (const proxy of proxies) proxy.cutAfterBytes = 6;
    },
    end: () => {
      for (const proxy of proxies) proxy.cutAfterBytes = undefined;
    },
    // The client is connected again soon, and may even ask again by itself.
    spoils: 0,
    says: /./,
  },
];

/** A client's store in one run, and what it heard. */
interface Subject {
  readonly name: string;
  readonly caller: Caller;
  readonly errors: Error[];
}

let runs = 0;

function subjectsOf(prefix: string, onStoreFailure: (typeof POLICIES)[number]): Subject[] {
  return clients.map(({ client }, i) => {
    const errors: Error[] = [];
    const onError = (error: unknown): void => void errors.push(error as Error);
    const options = { prefix, deadlineMs: DEADLINE_MS, onStoreFailure, denyCacheMaxMs: 0, onError };
    return { name: NAMES[i] as string, caller: new Caller(createRedisStore(client, options), plan), errors };
  });
}

async function isWell({ name, caller }: Subject): Promise<void> {
  await until(async () => HEALTHY.includes(await caller.check()), `${name} decides`);
  await until(() => caller.store.stats().breaker === 'closed', `${name} takes Redis for there`);
}

describe.each(FAULTS)('$name', ({ begin, end, spoils, says }) => {
  it.each(POLICIES)(
    'with onStoreFailure %s is answered in time by every client, and over with its cause',
    async (policy) => {
      const prefix = `policy-${runs++}`;
      const key = `${prefix}:{acc}:r:route`;
      const subjects = subjectsOf(prefix, policy);
      // Whatever the run before has left of the connections is over.
      await Promise.all(subjects.map(isWell));
      const before = subjects.map(({ caller }) => caller.outcomes.length);
      for (const { errors } of subjects) errors.length = 0;

      await begin(key);
      try {
        await Promise.all(
          subjects.map(async ({ caller }) => {
            for (let i = 0; i < CHECKS; i++) await caller.check();
          }),
        );
      } finally {
        await end(key);
      }
      for (const [i, { name, caller, errors }] of subjects.entries()) {
        const during = caller.outcomes.slice(before[i]);
        const spoiled = during.filter((outcome) => !HEALTHY.includes(outcome));
        expect(spoiled.length, name).toBeGreaterThanOrEqual(spoils);
        const told = policy === 'refuse' ? ['store_timeout', 'store_unavailable'] : ['degraded-accepted'];
        expect(told, name).toEqual(expect.arrayContaining([...new Set(spoiled)]));
        expect(errors, name).toHaveLength(spoiled.length);
        if (spoils > 0) expect(errors.map(({ message }) => message).join('\n'), name).toMatch(says);
        expect(caller.longestMs, name).toBeLessThan(DEADLINE_MS + SLACK_MS);
        expect(caller.store.stats().degraded, name).toBe(policy === 'refuse' ? 0 : caller.count('degraded-accepted'));
        // The max is far away: an outage told as a rejection would show.
        expect(caller.count('rejected', 'degraded-rejected'), name).toBe(0);
      }
      await Promise.all(subjects.map(isWell));
    },
  );
});
