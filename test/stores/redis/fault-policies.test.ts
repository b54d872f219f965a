/**
 * `admit` and `refuse` with a server that replies with errors: every check is answered in time, the error has the
 * cause, and the store recovers with the server (S17). For `local` see fault-answers.test.ts, for servers that do not
 * reply see faults.test.ts.
 */

import { patient } from 'headgate-testbed/patience';
import { Caller, HEALTHY } from 'headgate-testbed/redis-load';
import { type RedisServer, startRedis, until } from 'headgate-testbed/redis-server';
import { startTcpProxy, type TcpProxy } from 'headgate-testbed/tcp-proxy';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseLimit } from '../../../src/core/limit.ts';
import { createWindowSet } from '../../../src/core/window-set.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';
import { CLIENTS, type ConnectedClient } from '../../support/redis-clients.ts';

const DEADLINE_MS = 250;
const SLACK_MS = patient(1_000);
const MAX = 1_000;
const CHECKS = 8;
const NAMES = Object.keys(CLIENTS);
const POLICIES = ['admit', 'refuse'] as const;
const windowSet = createWindowSet([], parseLimit([`${MAX}/1h`]));

let server: RedisServer;
let admin: Redis;
/** One proxy per client, in the order of NAMES. */
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
  /** @param key the record that the checks need */
  begin(key: string): unknown;
  end(key: string): unknown;
  /** Least number of checks that fail. */
  readonly failures: number;
  /** Matches the message of an error. */
  readonly message: RegExp;
}

const FAULTS: readonly Fault[] = [
  {
    name: 'maxmemory reached (OOM)',
    begin: () => admin.config('SET', 'maxmemory', '1'),
    end: () => admin.config('SET', 'maxmemory', '0'),
    failures: CHECKS,
    message: /OOM/,
  },
  {
    name: 'a read-only replica (READONLY)',
    begin: () => admin.call('REPLICAOF', '127.0.0.1', '1'),
    end: () => admin.call('REPLICAOF', 'NO', 'ONE'),
    failures: CHECKS,
    message: /READONLY|MASTERDOWN/,
  },
  {
    name: 'a record of another type',
    begin: (key) => admin.multi().del(key).rpush(key, 'x').exec(),
    end: (key) => admin.del(key),
    failures: CHECKS,
    message: /the record .* was not written by headgate/,
  },
  {
    name: 'a record with garbage in it',
    begin: (key) => admin.set(key, 'garbage'),
    end: (key) => admin.del(key),
    failures: CHECKS,
    message: /the record .* was not written by headgate/,
  },
  {
    name: 'a connection cut in mid-reply',
    begin: () => {
      for (const proxy of proxies) proxy.cutAfterBytes = 6;
    },
    end: () => {
      for (const proxy of proxies) proxy.cutAfterBytes = undefined;
    },
    // The client reconnects soon, and can even send the command again by itself.
    failures: 0,
    message: /./,
  },
];

/** A client's store in one run, and the errors that it reported. */
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
    return { name: NAMES[i] as string, caller: new Caller(createRedisStore(client, options), windowSet), errors };
  });
}

async function isWell({ name, caller }: Subject): Promise<void> {
  await until(async () => HEALTHY.includes(await caller.check()), `${name} decides`);
  await until(() => caller.store.stats().breaker === 'closed', `the circuit breaker of ${name} is closed`);
}

describe.each(FAULTS)('$name', ({ begin, end, failures, message }) => {
  it.each(POLICIES)(
    'with onStoreFailure %s: every check is answered in time, and the store recovers when the cause is gone',
    async (policy) => {
      const prefix = `policy-${runs++}`;
      const key = `${prefix}:{acc}:r:route`;
      const subjects = subjectsOf(prefix, policy);
      // The connections have recovered from the previous run.
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
        const failed = during.filter((outcome) => !HEALTHY.includes(outcome));
        expect(failed.length, name).toBeGreaterThanOrEqual(failures);
        const expected = policy === 'refuse' ? ['store_timeout', 'store_unavailable'] : ['degraded-accepted'];
        expect(expected, name).toEqual(expect.arrayContaining([...new Set(failed)]));
        expect(errors, name).toHaveLength(failed.length);
        if (failures > 0) expect(errors.map((error) => error.message).join('\n'), name).toMatch(message);
        expect(caller.longestMs, name).toBeLessThan(DEADLINE_MS + SLACK_MS);
        expect(caller.store.stats().degraded, name).toBe(policy === 'refuse' ? 0 : caller.count('degraded-accepted'));
        // The max is not nearly reached, so a rejection would be wrong.
        expect(caller.count('rejected', 'degraded-rejected'), name).toBe(0);
      }
      await Promise.all(subjects.map(isWell));
    },
  );
});
