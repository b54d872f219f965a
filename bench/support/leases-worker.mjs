// A process of `npm run bench -- --topic leases`: one limiter, which decides about one busy account on request.
import { once } from 'node:events';
import { createConnection, createServer } from 'node:net';
import { createLimiter } from 'headgate';
import { createLeases } from 'headgate/limits';
import { createMemoryStore } from 'headgate/memory';
import { createRedisStore } from 'headgate/redis';
import { cpuMicros } from 'headgate-bench/cpu';
import { answerWith } from 'headgate-bench/member';
import { quantile } from 'headgate-bench/statistics';
import { Redis } from 'ioredis';

const { candidate, port, delayMs } = JSON.parse(process.argv[2]);
const limits = ['1000000000/1h', '2000000000/1d'];
const CONCURRENCY = 64;
const READ_CLOCK_EVERY = 64;

const redis = () => new Redis(port, '127.0.0.1');
/** A connection that takes `delayMs` there and back. */
async function farRedis() {
  const later = (from, to) => from.on('data', (bytes) => setTimeout(() => to.write(bytes), delayMs / 2));
  const proxy = createServer((near) => {
    const far = createConnection(port, '127.0.0.1');
    for (const socket of [near, far]) socket.setNoDelay(true).on('error', () => {});
    later(near, far);
    later(far, near);
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  return new Redis(proxy.address().port, '127.0.0.1');
}
async function stored() {
  const store = createRedisStore(delayMs ? await farRedis() : redis(), { deadlineMs: 5_000 });
  await store.ready();
  return store;
}
const limiter = await {
  memory: () => createLimiter({ store: createMemoryStore(), limits }),
  redis: async () => createLimiter({ store: await stored(), limits }),
  leases: async () => createLimiter({ store: await stored(), limits, leases: createLeases() }),
}[candidate]();

async function decide() {
  const { accepted, degraded } = await limiter.consume({ account: 'busy' });
  if (!accepted || degraded) throw new Error(`${candidate}: an unexpected decision`);
}

/** As many decisions as fit into the time. */
async function full({ seconds }) {
  let decisions = 0;
  let isOver = false;
  const end = performance.now() + seconds * 1_000;
  const before = cpuMicros();
  const worker = async () => {
    while (!isOver) {
      await decide();
      if (++decisions % READ_CLOCK_EVERY !== 0) continue;
      isOver = performance.now() >= end;
      // Timers and sockets have their turn, as they have between requests.
      await new Promise(setImmediate);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  return { decisions, cpuMicros: (cpuMicros() - before) / decisions };
}

/** A decision every few milliseconds: how long each one takes. */
async function paced({ seconds, everyMs }) {
  const times = [];
  const pending = [];
  const end = performance.now() + seconds * 1_000;
  while (performance.now() < end) {
    const from = performance.now();
    pending.push(decide().then(() => times.push(performance.now() - from)));
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
  await Promise.all(pending);
  return { decisions: times.length, p50: quantile(times, 0.5), p99: quantile(times, 0.99) };
}

answerWith((request) => (request.everyMs === undefined ? full(request) : paced(request)));
