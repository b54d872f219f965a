/** I1: which keys are accepted. I2: keys belong to applications. And the key that the provider sees. */

import { openRaw } from 'headgate-testbed/raw-http';
import { answer, held } from 'headgate-testbed/upstream';
import { describe, expect, it } from 'vitest';
import { gatewayForFile } from '../support/for-file.ts';
import { expectProblem, type Gateway, NO_RATES, ratesOf, startGateway, TOKEN } from '../support/gateway.ts';
import {
  BODY,
  callsOf,
  expectOriginal,
  expectReplay,
  freshKey,
  keyedConfig,
  MESSAGES,
  OPEN,
  OTHER_TOKEN,
  post,
  rawPost,
  reached,
} from '../support/keyed.ts';

const { upstream, gateway } = await gatewayForFile(keyedConfig);

const forwardedKey = () => upstream.last().headers['idempotency-key'];

describe('I1: the key', () => {
  it.each([
    ['empty', ''],
    ['256 characters', 'k'.repeat(256)],
    ['beyond ASCII', 'cl\u00e9'],
    ['a tab inside', 'a\tb'],
  ])('%s: 422, nothing claimed, charged or forwarded', async (_title, key) => {
    const reply = await post(gateway, freshKey(), { path: MESSAGES, headers: { 'idempotency-key': key } });
    const { detail } = expectProblem(reply, 422, 'errors/unprocessable_entity');
    expect(detail).toMatch(/idempotency-key/i);
    expect(ratesOf(reply)).toEqual(NO_RATES);
    expect(upstream.seen).toHaveLength(0);
  });

  it.each([
    ['two values', ['one', 'two']],
    ['the same value', ['one', 'one']],
  ])('given twice, %s: 422', async (_title, keys) => {
    const reply = await post(gateway, freshKey(), { headers: { 'idempotency-key': keys } });
    expectProblem(reply, 422, 'errors/unprocessable_entity');
    expect(upstream.seen).toHaveLength(0);
  });

  it('with a control character: refused by Node or by the gateway', async () => {
    const connection = await openRaw(gateway.port);
    connection.write(rawPost('control\u0001character'));
    const [reply] = await connection.waitFor(1);
    connection.destroy();
    expect([400, 422]).toContain(reply?.status);
    expect(upstream.seen).toHaveLength(0);
  });

  it.each([
    ['1 character', '1'],
    ['255 characters', 'k'.repeat(255)],
    ['commas, quotes and spaces', '"a, b"; c=d, \\e'],
    ['a name that every object has', '__proto__'],
    ['braces and colons, as in Redis keys', '{a}:b:{c}'],
  ])('%s: accepted unchanged', async (_title, key) => {
    const original = await post(gateway, key);
    expectOriginal(original);
    expectReplay(await post(gateway, key), original);
    expect(upstream.seen).toHaveLength(1);
  });

  it('in the quoted form of the draft: the same key as without quotes', async () => {
    const original = await post(gateway, 'raw-or-quoted');
    expectReplay(await post(gateway, '"raw-or-quoted"'), original);
    expect(upstream.seen).toHaveLength(1);
  });

  it('a key is not case-folded, trimmed or decoded', async () => {
    for (const key of ['Key a', 'key a', 'key  a', 'key%20a']) expectOriginal(await post(gateway, key));
    expect(upstream.seen).toHaveLength(4);
  });

  it('without a key every request is executed, without idempotency headers', async () => {
    for (let i = 0; i < 2; i += 1) {
      const reply = await gateway.ask('POST', OPEN, { 'content-type': 'application/json' }, { body: BODY });
      expect(reply.status).toBe(200);
      expect(Object.keys(reply.headers).filter((name) => name.startsWith('idempotency'))).toEqual([]);
      expect(forwardedKey()).toBeUndefined();
    }
    expect(upstream.seen).toHaveLength(2);
  });

  it('refusals of earlier stages come before the check of the key', async () => {
    const bad = { 'idempotency-key': '' };
    const noKey = { ...bad, 'x-api-key': undefined };
    expectProblem(await post(gateway, freshKey(), { headers: noKey }), 401, 'errors/missing_credentials');
    const unknown = '/api/v1/messages?account_id=nobody';
    const reply = await post(gateway, freshKey(), { path: unknown, headers: bad });
    expectProblem(reply, 404, 'errors/invalid_resource_identifier');
    expectProblem(
      await post(gateway, freshKey(), { path: '/nowhere', headers: bad }),
      404,
      'errors/resource_not_found',
    );
  });
});

describe('a route that requires a key', () => {
  it('answers 400 without one, after the earlier stages, and works with one', async () => {
    const path = '/api/v1/required';
    const routes = [{ route: `POST ${path}`, account: 'query.account_id', idempotent: { required: true } }];
    const strict = await startGateway(keyedConfig(upstream.url, { routes }));
    const send = (query: string, headers: Record<string, string>) =>
      strict.ask(
        'POST',
        `${path}?account_id=${query}`,
        { 'content-type': 'application/json', ...headers },
        { body: BODY },
      );
    const missing = await send('acc_1', {});
    expectProblem(missing, 400, 'errors/missing_idempotency_key');
    expect(ratesOf(missing)).toEqual(NO_RATES);
    expectProblem(await send('nobody', {}), 404, 'errors/invalid_resource_identifier');
    expect(upstream.seen).toHaveLength(0);
    expectOriginal(await send('acc_1', { 'idempotency-key': freshKey() }));
    await strict.stop();
  });
});

describe('a route that compares fields', () => {
  it('answers 409 to a second user behind the same API key, and replays to the first', async () => {
    const routes = [
      { route: 'POST /api/v1/open', idempotent: true },
      { route: 'POST /api/v1/free', idempotent: { compares: [] } },
      { route: 'POST /api/v1/cookie', idempotent: { compares: ['Cookie', 'x-user'] } },
    ];
    const idempotency = { secret: 'a-secret-of-fingerprints', compares: ['authorization'] };
    const comparing = await startGateway(keyedConfig(upstream.url, { idempotency, routes }));
    const key = freshKey();
    const send = (path: string, headers: Record<string, string>) => post(comparing, key, { path, headers });
    const original = await send('/api/v1/open', { authorization: 'Bearer ann' });
    expectOriginal(original);
    expectReplay(await send('/api/v1/open', { authorization: 'Bearer ann', cookie: 'theme=dark' }), original);
    for (const headers of [{ authorization: 'Bearer bob' }, {}]) {
      const refused = await send('/api/v1/open', headers as Record<string, string>);
      expectProblem(refused, 409, 'errors/already_used');
      expect(refused.text).toContain('the account or a compared field (authorization) differs');
    }
    const free = freshKey();
    const first = await post(comparing, free, { path: '/api/v1/free', headers: { authorization: 'Bearer ann' } });
    expectReplay(
      await post(comparing, free, { path: '/api/v1/free', headers: { authorization: 'Bearer bob' } }),
      first,
    );
    const cookie = freshKey();
    expectOriginal(await post(comparing, cookie, { path: '/api/v1/cookie', headers: { cookie: 'id=1' } }));
    expectProblem(
      await post(comparing, cookie, { path: '/api/v1/cookie', headers: { cookie: 'id=2' } }),
      409,
      'errors/already_used',
    );
    await comparing.stop();
  });
});

describe('a route that is not idempotent', () => {
  const plain = '/api/v1/plain?account_id=acc_1';

  it('forwards any Idempotency-Key of the client unchanged, and executes every request', async () => {
    for (const key of ['mine', 'mine', '', 'k'.repeat(300)]) {
      const reply = await post(gateway, 'mine', { path: plain, headers: { 'idempotency-key': key } });
      expectOriginal(reply);
      expect(forwardedKey()).toBe(key);
    }
    expect(upstream.seen).toHaveLength(4);
  });
});

describe('I2: keys of two applications never meet', () => {
  it('the same request with the same key: each executes, and each gets its own answer', async () => {
    const key = freshKey();
    upstream.behave(answer({ body: 'the first application’s' }));
    const first = await post(gateway, key);
    upstream.behave(answer({ body: 'the second application’s' }));
    const second = await post(gateway, key, { token: OTHER_TOKEN });
    expectOriginal(second);
    expect([first.text, second.text]).toEqual(['the first application’s', 'the second application’s']);
    expectReplay(await post(gateway, key), first);
    expectReplay(await post(gateway, key, { token: OTHER_TOKEN }), second);
    expect(callsOf(upstream, key)).toHaveLength(2);
  });

  it('another request with the same key: executed, without a hint that the key is in use', async () => {
    const key = freshKey();
    await post(gateway, key, { path: MESSAGES });
    const reply = await post(gateway, key, {
      path: '/api/v1/messages?account_id=acc_other',
      token: OTHER_TOKEN,
      body: '{"other":1}',
    });
    expectOriginal(reply);
    const fresh = await post(gateway, freshKey(), {
      path: '/api/v1/messages?account_id=acc_other',
      token: OTHER_TOKEN,
    });
    expect(Object.keys(reply.headers).sort()).toEqual(Object.keys(fresh.headers).sort());
  });

  it('while the original runs: the other application does not wait for it', async () => {
    const key = freshKey();
    const hold = held();
    upstream.behave(hold.behaviour);
    const original = post(gateway, key);
    await reached(upstream, key);
    upstream.behave(answer());
    expectOriginal(await post(gateway, key, { token: OTHER_TOKEN }));
    hold.release();
    expectOriginal(await original);
  });

  it('two API keys of one application share their idempotency keys', async () => {
    const key = freshKey();
    const original = await post(gateway, key);
    expectReplay(await post(gateway, key, { token: 'second-of-app-1' }), original);
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it('a scoped key does not get a replay of an account outside its scope', async () => {
    const key = freshKey();
    await post(gateway, key, { path: MESSAGES });
    const reply = await post(gateway, key, { path: MESSAGES, token: 'scoped' });
    expectProblem(reply, 403, 'errors/resource_access_restricted');
  });

  it('the 409 says nothing more about the request of an account or scope that the caller cannot reach', async () => {
    const inScope = '/api/v1/messages?account_id=acc_a';
    const details: unknown[] = [];
    for (const path of [MESSAGES, OPEN]) {
      for (const body of [BODY, BODY.replace('Hello', 'Guess'), '{"other":1}']) {
        const key = freshKey();
        await post(gateway, key, { path });
        const probe = await post(gateway, key, { path: path === OPEN ? OPEN : inScope, body, token: 'scoped' });
        details.push(expectProblem(probe, 409, 'errors/already_used').detail);
        expect(callsOf(upstream, key)).toHaveLength(1);
      }
    }
    expect(new Set(details)).toEqual(
      new Set([
        'This idempotency key belongs to another request: the account differs. Use a new key for a new request.',
      ]),
    );
  });

  it("the 409 still says what differs from a request of the caller's own account", async () => {
    const key = freshKey();
    await post(gateway, key, { path: MESSAGES });
    const other = await post(gateway, key, { path: MESSAGES, body: BODY.replace('Hello', 'Bye') });
    expect(expectProblem(other, 409, 'errors/already_used').detail).toContain('subject differs');
  });
});

describe('the key that is forwarded', () => {
  it("is not the client's, and does not reveal it", async () => {
    const key = freshKey();
    await post(gateway, key);
    const forwarded = forwardedKey();
    expect(forwarded).toMatch(/^[\x21-\x7e]{16,255}$/);
    expect(forwarded).not.toContain(key);
    expect(upstream.last().rawHeaders.filter((name) => name.toLowerCase() === 'idempotency-key')).toHaveLength(1);
  });

  it('is the same on every attempt and in every process, and different for another key or application', async () => {
    const key = freshKey();
    upstream.behave(answer({ status: 429 }));
    const seen: unknown[] = [];
    const ask = async (through: Gateway, name: string, token = TOKEN) => {
      expectProblem(await post(through, name, { token }), 429, 'provider/too_many_requests');
      seen.push(forwardedKey());
    };
    const another = await startGateway(keyedConfig(upstream.url));
    await ask(gateway, key);
    await ask(gateway, key);
    await ask(another, key);
    expect(new Set(seen).size).toBe(1);
    await ask(gateway, `${key}-2`);
    await ask(gateway, key, OTHER_TOKEN);
    expect(new Set(seen).size).toBe(3);
    await another.stop();
  });
});
