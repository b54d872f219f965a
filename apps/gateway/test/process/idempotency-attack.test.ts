/** Defects that attacks on idempotent routes have found. */

import { openRaw, pause } from 'headgate-testbed/raw-http';
import { answer, held } from 'headgate-testbed/upstream';
import { describe, expect, it } from 'vitest';
import { gatewayForFile } from '../support/for-file.ts';
import { expectProblem } from '../support/gateway.ts';
import { callsOf, expectReplay, freshKey, keyedConfig, OPEN, post, rawPost, reached } from '../support/keyed.ts';

const { upstream, gateway } = await gatewayForFile(keyedConfig);

it('a client that leaves while an answer waits behind another one does not block its end (I7, I11)', async () => {
  const [first, second] = [freshKey(), freshKey()];
  const original = held();
  const long = answer({ body: Buffer.alloc(20_000_000, 'a') });
  upstream.behave((seen, response, request) =>
    (callsOf(upstream, first).includes(seen) ? original.behaviour : long)(seen, response, request),
  );
  const connection = await openRaw(gateway.port);
  connection.write(rawPost(first) + rawPost(second));
  await reached(upstream, first);
  await reached(upstream, second);
  connection.destroy();
  original.release();
  const [call] = callsOf(upstream, second);
  const isOver = await Promise.race([call?.over, pause(8_000)]);
  expect(isOver).toBe(true);
  const retry = expectProblem(await post(gateway, second), 409, 'errors/already_used');
  expect(retry.detail).toContain('200');
});

describe('header bytes beyond ASCII', () => {
  it.each([
    ['stored', true],
    ['streamed', false],
  ])('reach the client unchanged: %s', async (_title, isKept) => {
    const headers = { 'x-name': 'J\xfcrgen' };
    upstream.behave((_seen, response) => {
      response.writeHead(200, headers);
      // The head comes alone, so that the gateway must forward it alone.
      response.write(Buffer.alloc(0));
      setTimeout(() => response.end(Buffer.from('body')), 50);
    });
    const key = freshKey();
    const ask = () => (isKept ? post(gateway, key) : gateway.ask('POST', OPEN));
    const original = await ask();
    expect(original.headers['x-name']).toBe(headers['x-name']);
    if (isKept) expectReplay(await ask(), original);
  });
});

it('Connection cannot hide the type of a body from the upstream', async () => {
  upstream.behave(answer());
  const body = JSON.stringify({ account_id: 'acc_1', other: '&account_id=acc_2&' });
  const headers = { connection: 'close, content-type', 'content-type': 'application/json' };
  expect(await gateway.ask('POST', '/api/v1/emails', headers, { body })).toMatchObject({ status: 200 });
  expect(upstream.last().headers['content-type']).toBe('application/json');
});

it('I2: a client cannot forge the key that the upstream sees', async () => {
  upstream.behave(answer());
  const key = freshKey();
  await post(gateway, key);
  const [seen] = callsOf(upstream, key);
  const derived = String(seen?.headers['idempotency-key']);
  expect(derived).toMatch(/^headgate-/);
  for (const name of ['idempotency-key', 'Idempotency_Key']) {
    const forged = await gateway.ask('POST', OPEN, { [name]: derived });
    expectProblem(forged, 422, 'errors/unprocessable_entity');
  }
});
