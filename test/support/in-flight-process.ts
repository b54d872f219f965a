import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { createLimiter } from '../../src/index.ts';
import { createRedisStore } from '../../src/stores/redis/limits.ts';

/** The work of a child process: clients that send requests to an upstream, until the input of the process ends. */
export interface InFlightOrder {
  readonly port: number;
  readonly prefix: string;
  readonly upstream: number;
  readonly inFlight: number;
  readonly leaseMs: number;
  readonly clients: number;
}

const order: InFlightOrder = JSON.parse(process.argv[2] as string);

async function main(): Promise<void> {
  const client = new Redis({ host: '127.0.0.1', port: order.port });
  if (client.status !== 'ready') await once(client, 'ready');
  const store = createRedisStore(client, { prefix: order.prefix, deadlineMs: 10_000 });
  const limits = { allMethods: { windows: ['1000000/1m'], inFlight: order.inFlight } };
  const limiter = createLimiter({ store, limits, inFlight: { leaseMs: order.leaseMs } });
  const agent = new Agent({ keepAlive: true });
  let isEnding = false;
  process.stdin.resume();
  void once(process.stdin, 'end').then(() => {
    isEnding = true;
  });
  const send = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const sent = request({ port: order.upstream, agent }, (response) => response.resume().once('end', resolve));
      sent.once('error', reject).end();
    });
  const one = async (): Promise<void> => {
    while (!isEnding) {
      const decision = await limiter.consume({ account: 'a', route: `r${Math.floor(Math.random() * 3)}` });
      if (decision.accepted) await send();
      else await sleep(5 + Math.random() * 30);
      await limiter.release(decision);
    }
  };
  await Promise.all(Array.from({ length: order.clients }, one));
  agent.destroy();
  client.disconnect();
}

void main();
