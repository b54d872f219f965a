/** Metrics without a label per account, and a log with the req_id and never a token. */

import { eventually, openRaw, send } from 'headgate-testbed/raw-http';
import { answer, startUpstream, type Upstream } from 'headgate-testbed/upstream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { configOf, freePort, type Gateway, serve, startGateway, TOKEN, writeConfig } from '../support/gateway.ts';

let upstream: Upstream;
let gateway: Gateway;
const requestIds: string[] = [];
const SECRETS = [TOKEN, 'unknown-token-in-clear', 'query-secret-value', 'cookie-secret-value', 'bearer-secret-value'];
const headers = { cookie: 'session=cookie-secret-value', authorization: 'Bearer bearer-secret-value' };

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway(configOf(upstream.url, { limits: { default: { allMethods: ['3/1m'] } } }));
  const ask = async (...args: Parameters<Gateway['ask']>) => {
    requestIds.push(String((await gateway.ask(...args)).headers['x-request-id']));
  };
  for (let i = 0; i < 5; i += 1) await ask('GET', '/api/v1/chats?account_id=acc_7&token=query-secret-value', headers);
  await ask('GET', '/api/v1/accounts/acc_8/chats', headers);
  await ask('GET', '/api/v1/chats?account_id=acc_7', { 'x-api-key': 'unknown-token-in-clear' });
  await ask('GET', '/no/such/path/12345');
  upstream.behave(answer({ status: 429 }));
  await ask('GET', '/api/v1/open');
  upstream.behave((_seen, response) => void response.socket?.destroy());
  await ask('GET', '/api/v1/open');
  upstream.behave(answer());
});
afterAll(() => gateway.stop());

const scrape = () => send(gateway.adminPort, { path: '/metrics' });

describe('GET /metrics on the admin listener', () => {
  it('is Prometheus text: every sample belongs to a metric with a type', async () => {
    const { status, headers: got, text } = await scrape();
    expect({ status, type: got['content-type'] }).toEqual({ status: 200, type: expect.stringMatching(/^text\/plain/) });
    const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]));
    const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    expect(samples.length).toBeGreaterThan(5);
    for (const sample of samples) {
      const name = /^[a-zA-Z_:][\w:]*/.exec(sample)?.[0] ?? '';
      expect(types.has(name) || types.has(name.replace(/_(bucket|sum|count|total)$/, '')), sample).toBe(true);
    }
  });

  it('counts decisions by route and outcome', async () => {
    const { text } = await scrape();
    const counter = /^# TYPE (\S*decision\S*) counter$/m.exec(text)?.[1] ?? 'no counter of decisions';
    const counts = text
      .split('\n')
      .filter((line) => line.startsWith(`${counter}{`) && line.includes('"GET /api/v1/chats"'))
      .map((line) => Number(line.split(' ').at(-1)));
    expect(counts.reduce((a, b) => a + b, 0)).toBe(5);
    expect(counts).toContain(2);
    expect(counts).toContain(3);
  });

  it('has the latency of store and upstream', async () => {
    const { text } = await scrape();
    expect(text).toMatch(/^# TYPE \S*store\S* (histogram|summary)$/m);
    expect(text).toMatch(/^# TYPE \S*upstream\S* (histogram|summary)$/m);
  });

  it('has no account, no token, no key, and no path that a client made up', async () => {
    const { text } = await scrape();
    for (const word of ['acc_7', 'acc_8', 'app_1', '/no/such/path', ...SECRETS]) expect(text).not.toContain(word);
  });

  it('is not on the main listener, and the admin listener forwards nothing', async () => {
    expect((await gateway.ask('GET', '/metrics')).status).toBe(404);
    const before = upstream.seen.length;
    const reply = await send(gateway.adminPort, { path: '/api/v1/open', headers: { 'x-api-key': TOKEN } });
    expect(reply.status).toBe(404);
    expect(upstream.seen).toHaveLength(before);
  });

  it('malformed HTTP on the admin listener ends only that connection', async () => {
    const connection = await openRaw(gateway.adminPort);
    connection.write('GARBAGE\r\n\r\n');
    await connection.closed;
    expect((await scrape()).status).toBe(200);
  });

  it('without `admin` in the config no admin listener starts', async () => {
    const port = await freePort();
    const plain = await serve(['--config', writeConfig({ ...configOf(upstream.url), listen: { port } })], port);
    expect((await plain.ask('GET', '/metrics')).status).toBe(404);
    expect(plain.output()).not.toContain('8081');
    expect((await plain.stop()).code).toBe(0);
  });
});

describe('the request log', () => {
  it('has a line with the req_id of every request', async () => {
    await eventually(
      () => {
        const logged = new Set(gateway.log().map((line) => line.req_id));
        return requestIds.every((id) => logged.has(id));
      },
      `lines for ${requestIds.join(' ')}`,
    );
  });

  it('has method and status', async () => {
    const rejected = requestIds[4];
    const lines = gateway.log().filter((line) => line.req_id === rejected);
    expect(JSON.stringify(lines)).toContain('429');
    expect(JSON.stringify(lines)).toContain('GET');
  });

  it('never has a token, known or unknown, nor a secret from query, cookie or authorization', () => {
    for (const secret of SECRETS) expect(gateway.output()).not.toContain(secret);
  });
});

describe('the config key `log`', () => {
  const CHATS = '/api/v1/chats?account_id=acc_7';
  const isRequest = ({ msg }: Record<string, unknown>): boolean => msg === 'request';

  it('adds application, account and the template of the path to the line of a request', async () => {
    const log = { application: true, account: true };
    const named = await startGateway(configOf(upstream.url, { log }));
    await named.ask('GET', '/api/v1/accounts/acc_8/chats');
    await named.ask('GET', CHATS, { 'x-api-key': 'unknown-token-in-clear' });
    await eventually(() => named.log().filter(isRequest).length === 2, 'both lines');
    expect(named.log().filter(isRequest)).toMatchObject([
      {
        level: 30,
        route: 'GET /api/v1/accounts/{account_id}/chats',
        path: '/api/v1/accounts/{account_id}/chats',
        application: 'app_1',
        account: 'acc_8',
      },
      { status: 401, application: null, account: null },
    ]);
    await named.stop();
  });

  it('level warn: only what the gateway itself could not do, with its cause', async () => {
    const quiet = await startGateway(configOf(`http://127.0.0.1:${await freePort()}`, { log: { level: 'warn' } }));
    await quiet.ask('GET', '/no/such/path');
    await quiet.ask('GET', CHATS);
    await eventually(() => quiet.log().some(isRequest), 'its line');
    expect(quiet.log()).toMatchObject([
      { level: 40, msg: 'upstream unreachable', cause: 'refused', code: 'ECONNREFUSED' },
      { level: 40, msg: 'request', status: 503, cause: 'refused' },
    ]);
    await quiet.stop();
    expect(quiet.log()).toHaveLength(2);
  });

  it('level silent: no line at all', async () => {
    const silent = await startGateway(configOf(`http://127.0.0.1:${await freePort()}`, { log: { level: 'silent' } }));
    expect((await silent.ask('GET', CHATS)).status).toBe(503);
    expect(await silent.stop()).toMatchObject({ code: 0 });
    expect(silent.output().trim()).toBe('');
  });
});
