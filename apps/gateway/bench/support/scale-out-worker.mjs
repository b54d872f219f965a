// A process of the topic scale-out: the limiter alone, on a store that other processes share.

import { createLimiter } from 'headgate';
import { createRedisStore } from 'headgate/redis';
import { cpuMicros } from 'headgate-bench/cpu';
import { answerWith } from 'headgate-bench/member';
import { pseudoRandomOrder } from 'headgate-bench/order';
import { Cluster, Redis } from 'ioredis';
import { ACCOUNTS, accountName, HOT_LIMITS, LIMITS, ROUTE } from './scale-out-limits.mjs';

const { ports, isCluster, index } = JSON.parse(process.argv[2]);
/** The clock is read once per this many decisions. */
const READ_CLOCK_EVERY = 64;

const nodes = ports.map((port) => ({ port, host: '127.0.0.1' }));
const client = isCluster ? new Cluster(nodes) : new Redis(nodes[0]);
await new Promise((resolve) => client.once('ready', resolve));
if (isCluster) await Promise.all(client.nodes('master').map((node) => node.ping()));

const store = createRedisStore(client, { deadlineMs: 10_000 });
const spread = createLimiter({ store, limits: LIMITS });
const hot = createLimiter({ store, limits: HOT_LIMITS });
const accounts = Array.from({ length: ACCOUNTS }, (_, i) => accountName(i));
const order = pseudoRandomOrder(ACCOUNTS);
/** Each process starts at another place, so that processes do not check the same accounts at the same time. */
let at = index * 251_677;

async function decide(limiter, account) {
  const { accepted, degraded } = await limiter.consume({ account, route: ROUTE });
  if (degraded) throw new Error('a decision was degraded: Redis did not reply within the deadline');
  return accepted;
}

/** @returns how many decisions in how many seconds, and the CPU time of the process */
async function load({ inFlight, seconds }) {
  let decisions = 0;
  let ended = false;
  const began = performance.now();
  const end = began + seconds * 1_000;
  const cpuBefore = cpuMicros();
  const ask = async () => {
    while (!ended) {
      const isAccepted = await decide(spread, accounts[order[at++ & (order.length - 1)]]);
      if (!isAccepted) throw new Error('an account far below its limit was rejected');
      if (++decisions % READ_CLOCK_EVERY === 0) ended = performance.now() >= end;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, ask));
  return { decisions, seconds: (performance.now() - began) / 1_000, cpuMicros: cpuMicros() - cpuBefore };
}

/** @returns how many were accepted */
async function rush({ account, requests, inFlight }) {
  let left = requests;
  let accepted = 0;
  const ask = async () => {
    while (left-- > 0) if (await decide(hot, account)) accepted++;
  };
  await Promise.all(Array.from({ length: inFlight }, ask));
  return { accepted };
}

answerWith((request) => (request.step === 'load' ? load(request) : rush(request)));
