// The attacks of the topic fairness. Each is bounded in its rate, so that it is not merely a contest for the processor.
// `prepare` runs once per gateway and is not measured; `start` returns a function that ends the attack. `onRedis`: the
// store is Redis behind a slow link, otherwise memory. `keyCount`: unused API keys of the config. `leadMs`: how long
// before the polite tenant the attack begins.
import { connect } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { refusedBodies } from './fairness-bodies.mjs';
import { freshTenant, MANY_KEYS, NOISY, NOISY_FREE, NOISY_SPENT, requestBytes } from './fairness-tenants.mjs';
import { createResponseReader } from './response-reader.mjs';

const JSON_TYPE = { 'content-type': 'application/json' };
let count = 0;
let tenants = 0;
const newKey = () => `${process.pid}-${++count}`;
const report = (key) => requestBytes('POST /reports', NOISY, { 'x-account': NOISY_FREE, 'idempotency-key': key });
const rejected = () => requestBytes('POST /reports', NOISY, { 'x-account': NOISY_SPENT, 'idempotency-key': newKey() });

export const ATTACKS = {
  'refused bodies': {
    freshTenants: true,
    start: (port, tally) => {
      const tenant = freshTenant(tenants++);
      const fields = { ...JSON_TYPE, 'idempotency-key': 'refused' };
      const requests = refusedBodies().map((body) => requestBytes('POST /messages', tenant, fields, body));
      return steady(port, tally, { connections: 10, perSecond: 10, next: () => requests[++count % requests.length] });
    },
  },
  'refused queries': {
    start: (port, tally) => {
      const request = requestBytes(`GET /messages?${'%cc%81%cc%96'.repeat(1_000)}=1`, NOISY, {});
      return steady(port, tally, { connections: 32, perSecond: 400, next: () => request });
    },
  },
  'unknown API keys': {
    keyCount: MANY_KEYS,
    start: (port, tally) =>
      steady(port, tally, {
        connections: 32,
        perSecond: 400,
        next: () => requestBytes('POST /reports', newKey(), { 'x-account': NOISY_FREE }),
      }),
  },
  'large answers': {
    onRedis: true,
    start: (port, tally) => steady(port, tally, { connections: 10, perSecond: 20, next: () => report(newKey()) }),
  },
  'replays of a large answer': {
    onRedis: true,
    prepare: (port, tally) => inOneBurst(port, tally, [report('replayed')]),
    start: (port, tally) => steady(port, tally, { connections: 10, perSecond: 20, next: () => report('replayed') }),
  },
  'rejected requests with a key': {
    prepare: fillClaims,
    start: (port, tally) => steady(port, tally, { connections: 4, perSecond: 200, next: rejected }),
  },
  'replays that the client does not read': {
    prepare: (port, tally) => inOneBurst(port, tally, [report('replayed')]),
    start: (port) => hold(port, { connections: 8, bytes: repeated(80, report('replayed')) }),
  },
  'uploads that stop': {
    leadMs: 2_500,
    start: (port) => {
      const fields = { 'x-account': NOISY_FREE, 'idempotency-key': 'upload', 'content-length': 2_000_000 };
      const half = Buffer.concat([requestBytes('POST /files', NOISY, fields), Buffer.alloc(1_000_000)]);
      return hold(port, { connections: 300, perSecond: 150, bytes: half });
    },
  },
  'a slow upstream': {
    leadMs: 2_500,
    start: (port) => {
      const request = requestBytes('GET /slow', NOISY, { 'x-account': NOISY_FREE });
      return hold(port, { connections: 300, perSecond: 150, bytes: repeated(10, request) });
    },
  },
};

const repeated = (times, bytes) => Buffer.concat(Array.from({ length: times }, () => bytes));

/** Most claims that one store in memory has, and how many are sent at once over how many connections. */
const [FULL, AT_ONCE, FILLING] = [100_000, 50, 8];

/** Sends requests with new keys that the limit rejects, until the store is full or refuses them. */
async function fillClaims(port, tally) {
  for (let sent = 0; sent < FULL; sent += AT_ONCE * FILLING) {
    const statuses = {};
    const burst = () =>
      inOneBurst(
        port,
        statuses,
        Array.from({ length: AT_ONCE }, () => rejected()),
      );
    await Promise.all(Array.from({ length: FILLING }, burst));
    for (const [status, number] of Object.entries(statuses)) tally[status] = (tally[status] ?? 0) + number;
    if (!(429 in statuses)) return;
  }
}

/** Sends the requests over one connection, and waits for all answers. */
function inOneBurst(port, tally, requests) {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    let answered = 0;
    const onAnswer = (status) => {
      tally[status] = (tally[status] ?? 0) + 1;
      if (++answered < requests.length) return;
      socket.destroy();
      resolve();
    };
    socket.on('data', createResponseReader(onAnswer));
    socket.on('error', reject);
    socket.on('close', resolve);
    socket.write(Buffer.concat(requests));
  });
}

/**
 * Sends requests at a fixed rate. A connection waits for its answer before its next request, so a gateway that answers
 * slowly gets fewer.
 */
function steady(port, tally, { connections, perSecond, next }) {
  const intervalMs = (connections / perSecond) * 1_000;
  let ended = false;
  const sockets = new Set();
  const sendAll = async (index) => {
    await wait((index / connections) * intervalMs);
    while (!ended) {
      const due = performance.now() + intervalMs;
      const status = await sendOnce(port, next(), sockets);
      if (!ended) tally[status] = (tally[status] ?? 0) + 1;
      await wait(Math.max(1, due - performance.now()));
    }
  };
  for (let i = 0; i < connections; i++) void sendAll(i);
  return () => {
    ended = true;
    for (const socket of sockets) socket.destroy();
  };
}

/** A connection per request: an answer that refuses a body may close its connection. */
function sendOnce(port, bytes, sockets) {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    sockets.add(socket);
    socket.on(
      'data',
      createResponseReader((status) => {
        resolve(status);
        socket.destroy();
      }),
    );
    socket.on('error', () => {});
    socket.on('close', () => {
      sockets.delete(socket);
      resolve('closed');
    });
    socket.write(bytes);
  });
}

/** Opens connections, at once or at a rate, that send the bytes and read no answer. */
function hold(port, { connections, perSecond = Number.POSITIVE_INFINITY, bytes }) {
  const sockets = [];
  const began = performance.now();
  const openDue = () => {
    const due = Math.min(connections, 1 + ((performance.now() - began) / 1_000) * perSecond);
    while (sockets.length < due) {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true });
      socket.on('error', () => {});
      socket.write(bytes);
      sockets.push(socket);
    }
  };
  const timer = setInterval(openDue, 10);
  openDue();
  return () => {
    clearInterval(timer);
    for (const socket of sockets) socket.destroy();
  };
}
