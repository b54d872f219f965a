/** Idempotency in metrics and log: what an operator sees, and what must not be visible. */

import { send } from 'headgate-testbed/raw-http';
import { answer, held } from 'headgate-testbed/upstream';
import { describe, expect, it } from 'vitest';
import { gatewayForFile } from '../support/for-file.ts';
import { expectProblem } from '../support/gateway.ts';
import { expectReplay, freshKey, keyedConfig, OPEN, post, reached } from '../support/keyed.ts';

const secret = 'a-very-secret-key';

const { upstream, gateway } = await gatewayForFile(keyedConfig);

const scrape = async () => (await send(gateway.adminPort, { path: '/metrics' })).text;

/** The sum of the samples whose line matches. */
async function total(pattern: RegExp): Promise<number> {
  const lines = (await scrape())
    .split('\n')
    .filter((line) => line.startsWith('headgate_idempotency') && pattern.test(line));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

describe('/metrics', () => {
  it('counts claims by outcome, replays, waits and claims in flight', async () => {
    const key = freshKey();
    const original = await post(gateway, key);
    expectReplay(await post(gateway, key), original);
    expectReplay(await post(gateway, key), original);
    expectProblem(await post(gateway, key, { body: '{}' }), 409, 'errors/already_used');
    expect(await total(/claimed/)).toBe(1);
    expect(await total(/replay/)).toBe(2);
    expect(await total(/mismatch/)).toBe(1);
    expect(await total(/in_flight/)).toBe(0);

    const slow = freshKey();
    const hold = held();
    upstream.behave(hold.behaviour);
    const running = post(gateway, slow);
    await reached(upstream, slow);
    expect(await total(/in_flight/)).toBe(1);
    const impatient = freshKey();
    const path = '/api/v1/impatient';
    const other = post(gateway, impatient, { path });
    await reached(upstream, impatient);
    expect(await total(/in_flight/)).toBe(2);
    expectProblem(await post(gateway, impatient, { path }), 409, 'errors/conflict');
    expect(await total(/in_progress|conflict/)).toBeGreaterThanOrEqual(1);
    const duplicate = post(gateway, slow);
    hold.release();
    expectReplay(await duplicate, await running);
    await other;
    expect(await total(/in_flight/)).toBe(0);
    expect(await total(/wait\S*(_count|_total)|waits/)).toBeGreaterThanOrEqual(0);
    expect(await scrape()).toMatch(/^headgate_idempotency_\S*wait/m);
    expect(await scrape()).toMatch(/^# TYPE headgate_idempotency_\S*orphan/m);
  });

  it('has a type for every sample, and no key, account or application in any', async () => {
    upstream.behave(answer());
    await post(gateway, secret);
    const text = await scrape();
    const types = new Set([...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name));
    for (const line of text.split('\n').filter((l) => l.startsWith('headgate_idempotency'))) {
      const name = /^\w+/.exec(line)?.[0] ?? '';
      expect(types.has(name) || types.has(name.replace(/_(bucket|sum|count|total)$/, '')), line).toBe(true);
    }
    for (const word of [secret, 'app_1', 'acc_1']) expect(text).not.toContain(word);
  });
});

it('the log has lines about claims, and neither key nor body', async () => {
  upstream.behave(answer());
  await post(gateway, secret, { path: OPEN, body: '{"password":"hunter2"}' });
  expect(gateway.output()).not.toContain(secret);
  expect(gateway.output()).not.toContain('hunter2');
});
