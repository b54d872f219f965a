/** I9 and I10: two gateways on one Redis, and owners that die or stall. The upstream counts the effects. */

import { pause } from 'headgate-testbed/raw-http';
import { answer, type Behaviour, held } from 'headgate-testbed/upstream';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { sharedStoreForFile } from '../support/for-file.ts';
import { expectProblem, type Gateway, startGateway } from '../support/gateway.ts';
import {
  callsOf,
  expectOriginal,
  expectReplay,
  freshKey,
  keyedConfig,
  OPEN,
  post,
  reached,
  settled,
} from '../support/keyed.ts';

const LEASE_MS = 1_500;
const AGAIN = '/api/v1/again';
const IMPATIENT = '/api/v1/impatient';
const { server, store, upstream, survivor, start } = await sharedStoreForFile(LEASE_MS);
/** A gateway that lives as long as the file, also if a test stops it for a while. */
const other = await start();
afterEach(() => other.signal('SIGCONT'));
afterAll(async () => expect((await other.stop()).code).toBe(0));

/** An operation that runs at the upstream, through a gateway: its own one, which the test kills, or the other one. */
async function running(path: string, then?: Behaviour, owner?: Gateway) {
  owner ??= await start();
  const key = freshKey();
  const hold = held(then);
  upstream.behave(hold.behaviour);
  const original = post(owner, key, { path });
  // The gateway may be killed.
  original.catch(() => {});
  await reached(upstream, key);
  upstream.behave(answer({ body: 'executed again' }));
  return { owner, key, hold, original };
}

async function kill(gateway: Gateway): Promise<void> {
  gateway.signal('SIGKILL');
  expect((await gateway.exited).signal).toBe('SIGKILL');
}

it('idempotency.secret: a retry is known where the secret is the same, and no output has the secret', async () => {
  const secret = 'a-secret-of-fingerprints';
  const withSecret = (value: string) =>
    startGateway(keyedConfig(upstream.url, { store, idempotency: { secret: value } }));
  const one = await withSecret(secret);
  const same = await withSecret(secret);
  const another = await withSecret(`${secret}-2`);
  const key = freshKey();
  const original = await post(one, key);
  expectReplay(await post(same, key), original);
  for (const gateway of [another, survivor]) {
    const { detail } = expectProblem(await post(gateway, key), 409, 'errors/already_used');
    expect(detail).not.toContain(secret);
  }
  expect(callsOf(upstream, key)).toHaveLength(1);
  for (const gateway of [one, same, another]) {
    await gateway.stop();
    expect(gateway.output()).not.toContain(secret);
  }
});

describe('I5: duplicates at the other gateway', () => {
  it('wait for the original and get its outcome, as every later one does', async () => {
    const { owner, key, hold, original } = await running(OPEN, answer({ status: 201, body: 'once' }));
    const duplicates = [post(survivor, key), post(survivor, key), post(owner, key)];
    expectProblem(await post(survivor, key, { body: '{}' }), 409, 'errors/already_used');
    hold.release();
    for (const duplicate of duplicates) expectReplay(await duplicate, await original);
    await kill(owner);
    expectReplay(await post(survivor, key), await original);
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it('40 at once through both: one execution', async () => {
    const key = freshKey();
    const asked = Array.from({ length: 40 }, (_, i) => post(i % 2 === 0 ? survivor : other, key));
    const replies = await Promise.all(asked);
    const originals = replies.filter(({ headers }) => headers['idempotency-replayed'] === undefined);
    expect(originals).toHaveLength(1);
    for (const reply of replies) expect(reply).toMatchObject({ status: 200, text: '{"ok":true}' });
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it('the lease is renewed: an operation that lasts longer is still the only one', async () => {
    const { key, hold, original } = await running(IMPATIENT, undefined, other);
    const end = performance.now() + 1.5 * LEASE_MS;
    while (performance.now() < end) {
      const refused = await post(survivor, key, { path: IMPATIENT });
      expectProblem(refused, 409, 'errors/conflict');
      // An orphan has no retry-after, because there is nothing to wait for.
      expect(refused.headers['retry-after']).toMatch(/^[1-9]\d*$/);
      await pause(50);
    }
    hold.release();
    expectReplay(await settled(survivor, key, { path: IMPATIENT }), await original);
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it('a key released at one gateway is free at the other, and the provider sees the same key', async () => {
    const key = freshKey();
    upstream.behave(answer({ status: 429 }));
    expectProblem(await post(other, key), 429, 'provider/too_many_requests');
    upstream.behave(answer());
    expectOriginal(await post(survivor, key));
    const [first, second] = callsOf(upstream, key);
    expect(first?.headers['idempotency-key']).toBe(second?.headers['idempotency-key']);
  });
});

describe('I4: a replay from Redis', () => {
  const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, i) => (i * 7) % 256));

  it.each<[string, number, string | Buffer]>([
    ['every byte', 201, bytes],
    ['text of every kind', 200, '\ufeffé \u2028 😀 "\\" \0 \r\n'],
    ['nothing', 204, ''],
    ['as much as may be stored', 200, Buffer.alloc(1_048_576, bytes)],
  ])('%s, byte for byte', async (_title, status, body) => {
    const key = freshKey();
    upstream.behave(answer({ status, headers: { 'x-latin': 'caf\u00e9', 'x-multi': ['b', 'a'] }, body }));
    const original = await post(survivor, key);
    expect(original.body.equals(Buffer.from(body))).toBe(true);
    expectReplay(await post(survivor, key), original);
    expect(callsOf(upstream, key)).toHaveLength(1);
  });
});

describe('I9: kill -9 of the owner', () => {
  it('after dispatch, reject: a retry gets 409 errors/conflict once the lease has expired, and nothing is sent again', async () => {
    const { owner, key, hold } = await running(OPEN);
    await kill(owner);
    // The retry waits for the end of the lease, not for as long as the original might have taken.
    for (let i = 0; i < 2; i += 1) {
      const refused = await post(survivor, key);
      const { detail } = expectProblem(refused, 409, 'errors/conflict');
      expect(detail).toMatch(/unknown/);
      expect(refused.headers['retry-after']).toBeUndefined();
    }
    expectProblem(await post(survivor, key, { body: '{}' }), 409, 'errors/already_used');
    hold.release();
    expect(callsOf(upstream, key)).toHaveLength(1);
    const metrics = await (await fetch(`http://127.0.0.1:${survivor.adminPort}/metrics`)).text();
    expect(metrics).toMatch(/^headgate_idempotency_\S*orphan\S* [1-9]/m);
  });

  it('after dispatch, reexecute: a retry executes again once the lease has expired, not earlier', async () => {
    const { owner, key, hold } = await running(AGAIN);
    await kill(owner);
    const began = performance.now();
    const again = await settled(survivor, key, { path: AGAIN });
    expectOriginal(again);
    expect(again.text).toBe('executed again');
    // The last renewal was at most a third of the lease ago.
    expect(performance.now() - began).toBeGreaterThan(LEASE_MS / 2);
    expectReplay(await post(survivor, key, { path: AGAIN }), again);
    hold.release();
    const [first, second] = callsOf(upstream, key);
    expect(first?.headers['idempotency-key']).toBe(second?.headers['idempotency-key']);
    expect(callsOf(upstream, key)).toHaveLength(2);
  });

  it.each([OPEN, AGAIN])(
    'before dispatch, while it waits for the store: a retry takes over, and is the only call: %s',
    async (path) => {
      const owner = await start();
      await post(owner, freshKey(), { path });
      upstream.seen.length = 0;
      const key = freshKey();
      server.freeze();
      const lost = post(owner, key, { path }).catch(() => 'broken');
      // Long enough for its command to be in the store's socket. The store reads it when it goes on.
      await pause(150);
      await kill(owner);
      server.thaw();
      expect(await lost).toBe('broken');
      const original = await settled(survivor, key, { path });
      expectOriginal(original);
      expectReplay(await post(survivor, key, { path }), original);
      expect(callsOf(upstream, key)).toHaveLength(1);
    },
  );
});

describe('I10: an owner that stalls past its lease', () => {
  it('reject: no other owner takes over, and every retry gets its outcome', async () => {
    const { owner, key, hold, original } = await running(OPEN, answer({ status: 201, body: 'slow' }), other);
    owner.signal('SIGSTOP');
    expectProblem(await post(survivor, key), 409, 'errors/conflict');
    hold.release();
    owner.signal('SIGCONT');
    const reply = await original;
    expect(reply).toMatchObject({ status: 201, text: 'slow' });
    expectReplay(await settled(survivor, key), reply);
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it('reexecute: the first outcome wins, and the client of the loser gets it too', async () => {
    const { owner, key, hold, original } = await running(AGAIN, answer({ status: 201, body: 'slow' }), other);
    owner.signal('SIGSTOP');
    const winner = await settled(survivor, key, { path: AGAIN });
    expect(winner).toMatchObject({ status: 200, text: 'executed again' });
    hold.release();
    owner.signal('SIGCONT');
    expectReplay(await original, winner);
    expectReplay(await post(survivor, key, { path: AGAIN }), winner);
    expectReplay(await post(owner, key, { path: AGAIN }), winner);
    expect(callsOf(upstream, key)).toHaveLength(2);
  });
});
