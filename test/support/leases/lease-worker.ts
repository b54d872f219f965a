/** A process that decides with leases until its input ends, and writes down every acceptance before it goes on. */
import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLimiter } from '../../../src/index.ts';
import { createLeases } from '../../../src/limits/index.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';
import { CLIENTS, type Connect } from '../redis-clients.ts';

/** The work of a process. */
export interface LeaseOrder {
  readonly port: number;
  readonly limits: readonly string[];
  readonly leaseMs: number;
  /** Requests per millisecond, about. */
  readonly pace: number;
}

/** A line of output: the instances that an acceptance was charged to; or, at the end, the figures of the leases. */
export type LeaseLine =
  | { readonly charged: readonly (readonly [durationMs: number, startedAt: number])[]; readonly leased: boolean }
  | { readonly lost: number; readonly held: number; readonly decisions: number };

// A pipe that is full would make a write to standard output asynchronous, and a killed process would lose it.
const print = (line: LeaseLine): void => void writeSync(1, `${JSON.stringify(line)}\n`);

const { port, limits, leaseMs, pace }: LeaseOrder = JSON.parse(process.argv[2] as string);
let isEnding = false;
process.stdin.resume().once('end', () => {
  isEnding = true;
});

async function main(): Promise<void> {
  const { client, disconnect } = await (CLIENTS['ioredis that fails fast'] as Connect<number>)(port);
  const leases = createLeases({ leaseMs });
  const store = createRedisStore(client, { deadlineMs: 500, onStoreFailure: 'refuse', logger: false });
  const limiter = createLimiter({ store, limits: [...limits], leases, validate: false });
  while (!isEnding) {
    for (let i = 0; i < pace; i++) {
      try {
        const { accepted, leased, trace } = await limiter.consume({ account: 'a' });
        const charged = trace.map(({ durationMs, startedAt = 0 }) => [durationMs, startedAt] as const);
        if (accepted) print({ charged, leased });
      } catch {
        // The store is away.
      }
    }
    await sleep(1);
  }
  await limiter.close();
  const { lost, held, decisions } = leases.stats();
  print({ lost, held, decisions });
  disconnect();
}

void main();
