import fc from 'fast-check';
import { startCluster, tell } from 'headgate-testbed/redis-cluster';
import { startRedis } from 'headgate-testbed/redis-server';
import { createMemoryAdjustments } from '../../src/shared-limits/stores/memory.ts';
import { createRedisAdjustments } from '../../src/shared-limits/stores/redis.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createRedisClaimStore } from '../../src/stores/redis/claims.ts';
import type { RedisClient } from '../../src/stores/redis/client.ts';
import { createRedisStore } from '../../src/stores/redis/limits.ts';
import { type ClaimStoreSubject, claimStoreSuite } from '../../src/testing/claim-store-suite.ts';
import type { FakeClock } from '../../src/testing/fake-clock.ts';
import { type LimitStoreSubject, limitStoreSuite, type SuiteRunner } from '../../src/testing/limit-store-suite.ts';
import { type AdjustmentStoreSubject, adjustmentStoreSuite } from '../support/adjustment-suite/suite.ts';
import { CLIENTS, CLUSTER_CLIENTS, type ConnectedClient } from '../support/redis-clients.ts';

export const STORES = ['memory', 'redis', 'cluster'] as const;
export const KINDS = ['limits', 'claims', 'adjustments'] as const;

export type StoreName = (typeof STORES)[number];
export type Kind = (typeof KINDS)[number];

/** Where the random histories start. With a path, fast-check replays the one history that it names so. */
export interface Start {
  readonly seed: number;
  readonly path?: string | undefined;
}

/** Runs random histories of each kind against the naive model. */
export interface Subject {
  /** Rejects with fast-check's report, which has the shrunk history, if the store and the model differ. */
  readonly run: Readonly<Record<Kind, (histories: number, start: Start) => Promise<void>>>;
  /** Removes what the histories have left in the store. */
  clear(): Promise<void>;
  stop(): Promise<void>;
}

type Creators = {
  readonly limits: LimitStoreSubject['create'];
  readonly claims: ClaimStoreSubject['create'];
  readonly adjustments: AdjustmentStoreSubject['create'];
};

/** Histories that one worker runs at a time. While one waits for its server, the others go on. */
export const LANES = 16;

/** The histories of the public suites on these stores. */
export function historiesOn(name: string, create: Creators): Subject['run'] {
  return {
    limits: inLanes((histories, start) =>
      onlyHistories((it) => limitStoreSuite(it, from(start), { name, histories, create: create.limits })),
    ),
    claims: inLanes((histories, start) =>
      onlyHistories((it) => claimStoreSuite(it, from(start), { name, histories, create: create.claims })),
    ),
    adjustments: inLanes((histories, start) =>
      onlyHistories((it) => adjustmentStoreSuite(it, from(start), { name, histories, create: create.adjustments })),
    ),
  };
}

type Run = (histories: number, start: Start) => Promise<void>;

/** Splits histories into lanes that run at the same time, each with a seed of its own: the next ones after the first. */
function inLanes(run: Run): Run {
  return async (histories, { seed, path }) => {
    const lanes = Math.min(LANES, histories);
    const ends = await Promise.allSettled(
      Array.from({ length: lanes }, (_, lane) =>
        run(Math.floor((histories + lane) / lanes), { seed: (seed + lane) | 0, path }),
      ),
    );
    const failed = ends.find((end) => end.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  };
}

/** The suites take fast-check as a parameter. This one starts where it is told to. */
function from({ seed, path }: Start): typeof fc {
  const at = path === undefined ? { seed } : { seed, path };
  const assert = (...[property, parameters]: Parameters<typeof fc.assert>) => {
    return fc.assert(property, { ...parameters, ...at });
  };
  return { ...fc, assert: assert as typeof fc.assert };
}

/** Runs the case of a suite that has the random histories. The others need no millions of runs. */
async function onlyHistories(suite: (runner: SuiteRunner) => void): Promise<void> {
  const found: (() => Promise<void>)[] = [];
  const it: SuiteRunner['it'] = (name, run) => {
    if (name.endsWith(' random histories')) found.push(run);
  };
  suite({ describe: (_, define) => define(), it });
  const [run] = found;
  if (run === undefined || found.length > 1) throw new Error(`the suite has ${found.length} cases of random histories`);
  await run();
}

/** Starts the servers that a store needs, and connects to them. */
export async function openSubject(name: StoreName): Promise<Subject> {
  if (name === 'memory') return memorySubject();
  if (name === 'redis') {
    const server = await startRedis();
    return redisSubject(name, await connect(CLIENTS, 'ioredis by default', server.port), [server.port], server.stop);
  }
  const cluster = await startCluster();
  const { ports, stop } = cluster;
  return redisSubject(name, await connect(CLUSTER_CLIENTS, 'ioredis Cluster by default', ports), ports, stop);
}

function connect<Where>(
  clients: Record<string, (where: Where) => Promise<ConnectedClient>>,
  name: string,
  where: Where,
): Promise<ConnectedClient> {
  return (clients[name] as (where: Where) => Promise<ConnectedClient>)(where);
}

function memorySubject(): Subject {
  const run = historiesOn('memory', {
    limits: (clock) => createMemoryStore({ clock }),
    claims: (clock) => createMemoryClaimStore({ clock, maxKeys: 1_000 }),
    adjustments: (clock) => createMemoryAdjustments({ clock }),
  });
  return { run, clear: async () => {}, stop: async () => {} };
}

function redisSubject(
  name: StoreName,
  { client, disconnect }: { readonly client: RedisClient; disconnect(): void },
  ports: readonly number[],
  stopServers: () => Promise<void>,
): Subject {
  let stores = 0;
  const options = (clock: FakeClock) => ({ clock, prefix: `nightly-${stores++}`, deadlineMs: 60_000 });
  const run = historiesOn(name, {
    limits: (clock) => createRedisStore(client, options(clock)),
    claims: (clock) => createRedisClaimStore(client, options(clock)),
    adjustments: (clock) => createRedisAdjustments(client, options(clock)),
  });
  return {
    run,
    clear: async () => void (await Promise.all(ports.map((port) => tell(port, 'FLUSHALL')))),
    stop: async () => {
      disconnect();
      await stopServers();
    },
  };
}
