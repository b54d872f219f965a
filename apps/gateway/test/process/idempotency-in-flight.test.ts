/** I5: while the original runs there is one execution. Duplicates wait for its result, or get 409 with retry-after. */

import { eventually, openRaw } from 'headgate-testbed/raw-http';
import { answer, held } from 'headgate-testbed/upstream';
import { describe, expect, it } from 'vitest';
import { gatewayForFile } from '../support/for-file.ts';
import { expectProblem, ratesOf, TOKEN } from '../support/gateway.ts';
import {
  BODY,
  callsOf,
  expectOriginal,
  expectReplay,
  freshKey,
  keyedConfig,
  MESSAGES,
  OPEN,
  post,
  rawPost,
  reached,
} from '../support/keyed.ts';

const IMPATIENT = '/api/v1/impatient';
const BRIEF = '/api/v1/brief';
const BRIEF_MS = 300;

const { upstream, gateway } = await gatewayForFile((upstream) => {
  const config = keyedConfig(upstream);
  const brief = { route: `POST ${BRIEF}`, idempotent: { waitMs: BRIEF_MS } };
  return { ...config, routes: [...(config.routes as object[]), brief] };
});

describe('I5: duplicates', () => {
  it('50 at once: one execution, one charge, the same answer for all', async () => {
    const key = freshKey();
    const hold = held(answer({ status: 201, headers: { 'x-own': 'one' }, body: '{"id":"only"}' }));
    upstream.behave(hold.behaviour);
    const path = '/api/v1/messages?account_id=acc_3';
    const asked = Array.from({ length: 50 }, () => post(gateway, key, { path }));
    await reached(upstream, key);
    const metrics = async () => (await fetch(`http://127.0.0.1:${gateway.adminPort}/metrics`)).text();
    expect(await metrics()).toMatch(/^headgate_idempotency_\S*in_flight\S* 1$/m);
    hold.release();
    const replies = await Promise.all(asked);
    const originals = replies.filter(({ headers }) => headers['idempotency-replayed'] === undefined);
    expect(originals).toHaveLength(1);
    const [original] = originals;
    for (const reply of replies) if (reply !== original) expectReplay(reply, original as never);
    expect(original).toMatchObject({ status: 201, text: '{"id":"only"}' });
    expect(callsOf(upstream, key)).toHaveLength(1);
    expect(ratesOf(await post(gateway, freshKey(), { path })).remaining).toBe(998);
  });

  it('a duplicate waits, and gets the outcome as soon as there is one', async () => {
    const key = freshKey();
    const hold = held();
    upstream.behave(hold.behaviour);
    const original = post(gateway, key);
    await reached(upstream, key);
    let done = false;
    const duplicate = post(gateway, key).finally(() => {
      done = true;
    });
    await post(gateway, freshKey(), { path: '/api/v1/nowhere' });
    expect(done).toBe(false);
    hold.release();
    expectReplay(await duplicate, await original);
  });

  it('waitMs 0: 409 errors/conflict with retry-after, at once', async () => {
    const key = freshKey();
    const hold = held();
    upstream.behave(hold.behaviour);
    const original = post(gateway, key, { path: IMPATIENT });
    await reached(upstream, key);
    const refused = await post(gateway, key, { path: IMPATIENT });
    expectProblem(refused, 409, 'errors/conflict');
    expect(refused.headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect(refused.headers['idempotency-replayed']).toBeUndefined();
    hold.release();
    expectReplay(await post(gateway, key, { path: IMPATIENT }), await original);
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it('after waitMs: 409 errors/conflict with retry-after, not earlier', async () => {
    const key = freshKey();
    const hold = held();
    upstream.behave(hold.behaviour);
    const original = post(gateway, key, { path: BRIEF });
    await reached(upstream, key);
    const began = performance.now();
    const refused = await post(gateway, key, { path: BRIEF });
    expect(performance.now() - began).toBeGreaterThan(BRIEF_MS - 20);
    expectProblem(refused, 409, 'errors/conflict');
    expect(refused.headers['retry-after']).toMatch(/^[1-9]\d*$/);
    hold.release();
    expectReplay(await post(gateway, key, { path: BRIEF }), await original);
  });

  it('another request with the same key does not wait: 409 errors/already_used at once', async () => {
    const key = freshKey();
    const hold = held();
    upstream.behave(hold.behaviour);
    const original = post(gateway, key);
    await reached(upstream, key);
    expectProblem(await post(gateway, key, { body: '{"to":"another person"}' }), 409, 'errors/already_used');
    hold.release();
    expectOriginal(await original);
  });

  it('a duplicate whose client leaves while it waits changes nothing', async () => {
    const key = freshKey();
    const hold = held();
    upstream.behave(hold.behaviour);
    const original = post(gateway, key);
    await reached(upstream, key);
    const impatient = await openRaw(gateway.port);
    impatient.write(rawPost(key));
    const patient = post(gateway, key);
    impatient.destroy();
    hold.release();
    expectReplay(await patient, await original);
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it('if the original releases the key, one of the waiting duplicates executes next', async () => {
    const key = freshKey();
    const hold = held(answer({ status: 429 }));
    upstream.behave(hold.behaviour);
    const original = post(gateway, key);
    await reached(upstream, key);
    const waiting = Array.from({ length: 5 }, () => post(gateway, key));
    upstream.behave(answer());
    hold.release();
    expectProblem(await original, 429, 'provider/too_many_requests');
    const replies = await Promise.all(waiting);
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(replies.filter(({ headers }) => headers['idempotency-replayed'] === undefined)).toHaveLength(1);
    expect(callsOf(upstream, key)).toHaveLength(2);
  });
});

describe('one connection', () => {
  it('two keyed requests, pipelined: both are answered, in their order', async () => {
    const keys = [freshKey(), freshKey()] as const;
    upstream.behave(async (seen, response) => {
      await seen.whole;
      response.end(String(seen.headers['x-test-key']));
    });
    const connection = await openRaw(gateway.port);
    connection.write(rawPost(keys[0]) + rawPost(keys[1], MESSAGES));
    const replies = await connection.waitFor(2);
    connection.destroy();
    expect(replies.map(({ text }) => text)).toEqual(keys);
    expect(upstream.seen.map((seen) => seen.body().toString())).toEqual([BODY, BODY]);
  });

  it.each([2, 1_000_000])('the same request twice, pipelined, answered in %i bytes: executed once', async (size) => {
    const key = freshKey();
    upstream.behave(answer({ headers: {}, body: 'x'.repeat(size) }));
    const connection = await openRaw(gateway.port);
    connection.write(rawPost(key) + rawPost(key));
    const replies = await connection.waitFor(2);
    connection.destroy();
    expect(replies.map(({ status, text }) => [status, text.length])).toEqual([
      [200, size],
      [200, size],
    ]);
    expect(replies.map(({ headers }) => headers['idempotency-replayed']).filter(Boolean)).toEqual(['true']);
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it('another request with the same key, pipelined: one of them is refused', async () => {
    const key = freshKey();
    const connection = await openRaw(gateway.port);
    connection.write(rawPost(key) + rawPost(key, OPEN, {}, '{"another":1}'));
    const statuses = (await connection.waitFor(2)).map(({ status }) => status);
    connection.destroy();
    expect(statuses.sort()).toEqual([200, 409]);
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it('after a replay and a 409 the connection stays usable', async () => {
    const key = freshKey();
    const connection = await openRaw(gateway.port);
    for (const [i, body] of [BODY, BODY, '{"another":1}', BODY].entries()) {
      connection.write(rawPost(key, OPEN, {}, body));
      await connection.waitFor(i + 1);
    }
    expect(connection.replies().map(({ status }) => status)).toEqual([200, 200, 409, 200]);
    connection.destroy();
  });

  it('Expect: 100-continue with a keyed body: 100, then the answer', async () => {
    const key = freshKey();
    const connection = await openRaw(gateway.port);
    const headers = { 'x-api-key': TOKEN, expect: '100-continue', 'content-length': String(BODY.length) };
    connection.write(rawPost(key, OPEN, headers, ''));
    await eventually(() => connection.received().includes('100 Continue'), '100 Continue');
    expect(callsOf(upstream, key)).toHaveLength(0);
    connection.write(BODY);
    const [reply] = await connection.waitFor(1);
    connection.destroy();
    expect(reply?.status).toBe(200);
    expect(callsOf(upstream, key)[0]?.body().toString()).toBe(BODY);
    expect((await post(gateway, key)).headers['idempotency-replayed']).toBe('true');
  });
});
