/** After the gateway's own 504 the operation goes on, and a late answer becomes the outcome that retries get. */

import type { Reply } from 'headgate-testbed/raw-http';
import { answer, breakBeforeAnswer, held } from 'headgate-testbed/upstream';
import { describe, expect, it } from 'vitest';
import { gatewayForFile } from '../support/for-file.ts';
import { expectProblem, type Gateway, startGateway } from '../support/gateway.ts';
import { callsOf, expectOriginal, freshKey, keyedConfig, OPEN, post, reached, settled } from '../support/keyed.ts';

const IMPATIENT = '/api/v1/impatient';
const AGAIN = '/api/v1/again';
const TIMEOUT = 300;

const { upstream, gateway } = await gatewayForFile(keyedConfig, { upstreamTimeoutMs: TIMEOUT });

/** An operation whose client has got 504, and that goes on until `release`. */
async function timedOut(through: Gateway, path: string, then = answer({ status: 201, body: 'late' })) {
  const key = freshKey();
  const hold = held(then);
  upstream.behave(hold.behaviour);
  const late = await post(through, key, { path });
  expectProblem(late, 504, 'errors/request_timeout');
  expectOriginal(late, 504);
  return { key, late, release: hold.release };
}

function expectLate(reply: Reply) {
  expect(reply).toMatchObject({ status: 201, text: 'late' });
  expect(reply.headers['idempotency-replayed']).toBe('true');
}

describe('I6: a 504 of the gateway does not end the operation', () => {
  it('a duplicate waits, and gets the late answer, like every retry after it', async () => {
    const { key, release } = await timedOut(gateway, OPEN);
    const duplicate = post(gateway, key);
    release();
    expectLate(await duplicate);
    expectLate(await post(gateway, key));
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it.each([
    ['reject', IMPATIENT],
    ['reexecute', AGAIN],
  ])('onOrphan %s: until then, a duplicate that does not wait gets 409 errors/conflict', async (_policy, path) => {
    const { key, release } = await timedOut(gateway, path);
    for (let i = 0; i < 2; i += 1) {
      const refused = await post(gateway, key, { path });
      expectProblem(refused, 409, 'errors/conflict');
      expect(refused.headers['retry-after']).toMatch(/^[1-9]\d*$/);
    }
    expectProblem(await post(gateway, key, { path, body: '{}' }), 409, 'errors/already_used');
    release();
    expectLate(await settled(gateway, key, { path }));
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it('the upstream breaks off late: retries get 503 errors/network_down', async () => {
    const { key, release } = await timedOut(gateway, OPEN, breakBeforeAnswer);
    release();
    const retry = await post(gateway, key);
    expect(retry).toMatchObject({ status: 503, text: expect.stringContaining('errors/network_down') });
    expect(retry.headers['idempotency-replayed']).toBe('true');
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it('a late 429 of the provider releases the key', async () => {
    const { key, release } = await timedOut(gateway, OPEN, answer({ status: 429 }));
    const retry = post(gateway, key);
    upstream.behave(answer());
    release();
    expectOriginal(await retry);
    expect(callsOf(upstream, key)).toHaveLength(2);
  });

  it('a late answer that is too large to store: 409 errors/already_used with its status (I7)', async () => {
    const { key, release } = await timedOut(gateway, '/api/v1/small', answer({ status: 201, body: 'x'.repeat(5_000) }));
    release();
    const { detail } = expectProblem(await post(gateway, key, { path: '/api/v1/small' }), 409, 'errors/already_used');
    expect(detail).toMatch(/201/);
  });
});

describe('lateAnswerMs', () => {
  it('after it the 504 is stored, and a still later answer changes nothing', async () => {
    const idempotency = { lateAnswerMs: 400, leaseMs: 300 };
    const brief = await startGateway(keyedConfig(upstream.url, { upstreamTimeoutMs: TIMEOUT, idempotency }));
    const { key, late, release } = await timedOut(brief, OPEN);
    const kept = await post(brief, key);
    expect(kept).toMatchObject({ status: 504, text: late.text });
    expect(kept.headers['idempotency-replayed']).toBe('true');
    release();
    const again = await post(brief, key);
    expect(again).toMatchObject({ status: 504, text: late.text });
    expect(callsOf(upstream, key)).toHaveLength(1);
    await brief.stop();
  });

  it('also applies if the client left before the timeout (I11)', async () => {
    const key = freshKey();
    const hold = held(answer({ status: 201, body: 'late' }));
    upstream.behave(hold.behaviour);
    const gone = new AbortController();
    const asked = fetch(`http://127.0.0.1:${gateway.port}${OPEN}`, {
      method: 'POST',
      headers: {
        'x-api-key': 'second-of-app-1',
        'idempotency-key': key,
        'x-test-key': key,
        'content-type': 'application/json',
      },
      body: '{}',
      signal: gone.signal,
    }).catch(() => 'gone');
    await reached(upstream, key);
    gone.abort();
    expect(await asked).toBe('gone');
    const duplicate = post(gateway, key, { body: '{}' });
    await new Promise((resolve) => setTimeout(resolve, 2 * TIMEOUT));
    hold.release();
    expectLate(await duplicate);
    expect(callsOf(upstream, key)).toHaveLength(1);
  });
});
