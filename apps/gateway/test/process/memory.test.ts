/**
 * What clients that stop cost in memory. The bounds are generous: without the bounds, each case needs hundreds of
 * megabytes.
 */
import { readFileSync } from 'node:fs';
import { openRaw, pause, type RawConnection } from 'headgate-testbed/raw-http';
import { answer, startUpstream, type Upstream } from 'headgate-testbed/upstream';
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { freshKey, keyedConfig, OPEN, post, rawPost } from '../support/keyed.ts';

const MIB = 1_048_576;
let upstream: Upstream;
let gateway: Gateway;
let connections: RawConnection[];

beforeAll(async () => {
  upstream = await startUpstream();
});
beforeEach(async () => {
  connections = [];
  gateway = await startGateway(keyedConfig(upstream.url));
});
afterEach(async () => {
  for (const { destroy } of connections) destroy();
  await gateway.stop();
});

/** Resident memory of the gateway in MiB. */
function memory(): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${gateway.process.pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) / 1_024;
}

/** How much the memory grows, at most, until it has not grown for a second. */
async function growth(from: number): Promise<number> {
  let most = memory();
  for (let quiet = 0; quiet < 10; quiet++) {
    await pause(100);
    if (memory() > most + 1) quiet = 0;
    most = Math.max(most, memory());
  }
  return most - from;
}

async function open(count: number): Promise<void> {
  connections = await Promise.all(Array.from({ length: count }, () => openRaw(gateway.port)));
}

it('300 uploads that stop after 1 MB', async () => {
  await post(gateway, freshKey(), { body: 'x'.repeat(MIB) });
  const from = memory();
  await open(300);
  for (const { write } of connections) {
    write(rawPost(freshKey(), OPEN, { 'content-length': '2000000' }, ''));
    write(Buffer.alloc(1_000_000, 'x'));
  }
  expect(await growth(from)).toBeLessThan(200);
});

it('80 KB of pipelined replays of a 1 MB answer, to a client that does not read', async () => {
  upstream.behave(answer({ body: 'x'.repeat(MIB - 1_000) }));
  const key = freshKey();
  await post(gateway, key);
  const from = memory();
  await open(1);
  connections[0]?.socket.pause();
  connections[0]?.write(rawPost(key).repeat(250));
  expect(await growth(from)).toBeLessThan(120);
});
