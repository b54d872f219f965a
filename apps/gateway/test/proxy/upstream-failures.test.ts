/** Why an upstream could not be reached, or did not answer: in the log and in the metrics. */
import { createServer } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterFile } from 'headgate-testbed/after-file';
import { createCertificate } from 'headgate-testbed/certificate';
import { eventually, openRaw, rawRequest } from 'headgate-testbed/raw-http';
import {
  answer,
  type Behaviour,
  breakBeforeAnswer,
  breakMidAnswer,
  held,
  startUpstream,
} from 'headgate-testbed/upstream';
import { afterAll, describe, expect, it } from 'vitest';
import { configOf, freePort, TOKEN } from '../support/gateway.ts';
import { type InProcess, startInProcess, startMute } from '../support/in-process.ts';
import { freshKey, keyedConfig } from '../support/keyed.ts';

const INFO = 30;
const WARN = 40;
const certificate = createCertificate();
afterAll(() => certificate.remove());

/** The line of the request, and those about the upstream. */
async function linesOf(gateway: InProcess) {
  const request = await eventually(() => gateway.lines().find(({ msg }) => msg === 'request'), 'its line');
  return { request, failures: gateway.lines().filter(({ msg }) => /upstream/.test(String(msg))) };
}

/** The samples of the counter that are not 0, without its name. */
async function countsOf(gateway: InProcess): Promise<string[]> {
  const text = await gateway.metrics();
  const samples = [...text.matchAll(/^headgate_upstream_errors_total(\{.*)$/gm)].map(([, sample]) => sample as string);
  return samples.filter((sample) => !sample.endsWith(' 0'));
}

const portOf = (server: { address(): unknown }): number => (server.address() as { port: number }).port;

/** An upstream with a certificate that the gateway does not trust. */
async function untrusted(): Promise<string> {
  const server = createTlsServer({ cert: certificate.cert, key: certificate.key });
  server.on('tlsClientError', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterFile(() => void server.close());
  return `https://127.0.0.1:${portOf(server)}`;
}

/** An upstream that closes each connection when its first byte arrives. */
async function closing(): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {}).once('data', () => socket.resetAndDestroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterFile(() => void server.close());
  return `https://127.0.0.1:${portOf(server)}`;
}

const behaving = (behaviour: Behaviour) => async () => (await startUpstream(behaviour)).url;

const sendText: Behaviour = async (seen, response) => {
  await seen.whole;
  response.socket?.end('SMTP ready\r\n\r\n');
};

describe('an upstream that is unreachable', () => {
  it.each<[string, string | undefined, () => Promise<string>, number]>([
    ['refused', 'ECONNREFUSED', async () => `http://127.0.0.1:${await freePort()}`, 503],
    ['dns', 'E\\w+', async () => 'http://headgate-upstream.invalid', 503],
    ['certificate', 'DEPTH_ZERO_SELF_SIGNED_CERT', untrusted, 503],
    ['tls', 'E\\w+', async () => (await startUpstream()).url.replace('http:', 'https:'), 503],
    ['reset', 'ECONNRESET', closing, 503],
    ['timeout', undefined, async () => `https://127.0.0.1:${(await startMute()).port}`, 504],
  ])('%s: a warning with cause, code, host and port', async (cause, code, start, status) => {
    const url = new URL(await start());
    const gateway = await startInProcess(configOf(url.href, { upstreamTimeoutMs: 2_000 }));
    const reply = await gateway.ask('GET', '/api/v1/chats?account_id=acc_1&secret');
    expect(reply.status).toBe(status);
    const { request, failures } = await linesOf(gateway);
    const upstream = `${url.hostname}:${url.port || 80}`;
    expect(failures).toEqual([
      {
        level: WARN,
        time: expect.any(String),
        req_id: reply.headers['x-request-id'],
        route: 'GET /api/v1/chats',
        upstream,
        cause,
        ...(code === undefined ? {} : { code: expect.stringMatching(new RegExp(`^${code}$`)) }),
        msg: 'upstream unreachable',
      },
    ]);
    expect(request).toMatchObject({ level: WARN, status, cause, req_id: reply.headers['x-request-id'] });
    expect(await countsOf(gateway)).toEqual([`{upstream="${upstream}",cause="${cause}"} 1`]);
  });

  it('an outage does not flood the log: every request is counted, and few lines are written', async () => {
    const port = await freePort();
    const gateway = await startInProcess(configOf(`http://127.0.0.1:${port}`, { log: { level: 'warn' } }));
    await Promise.all(Array.from({ length: 50 }, () => gateway.ask('GET', '/api/v1/open')));
    const failures = () => gateway.lines().filter(({ msg }) => /upstream/.test(String(msg)));
    const isTold = (): boolean => {
      const written = failures().filter(({ msg }) => msg === 'upstream unreachable').length;
      return failures().reduce((sum, { leftOut = 0 }) => sum + Number(leftOut), written) === 50;
    };
    await eventually(isTold, 'the lines of all 50');
    // A loaded machine may take some seconds for the 50 requests, with 5 lines in each.
    expect(failures().length).toBeLessThan(40);
    expect(await countsOf(gateway)).toEqual([`{upstream="127.0.0.1:${port}",cause="refused"} 50`]);
  });
});

describe('an upstream that received the request', () => {
  it.each<[string, string, string | undefined, Behaviour, number]>([
    ['closes the connection', 'reset', 'ECONNRESET', breakBeforeAnswer, 503],
    ['sends no head in time', 'timeout', undefined, held().behaviour, 504],
    ['does not send HTTP', 'invalid', undefined, sendText, 503],
  ])('%s: cause %s', async (_title, cause, code, behaviour, status) => {
    const gateway = await startInProcess(configOf(await behaving(behaviour)(), { upstreamTimeoutMs: 500 }));
    expect((await gateway.ask('POST', '/api/v1/open', {}, { body: 'x' })).status).toBe(status);
    const { request, failures } = await linesOf(gateway);
    expect(failures).toMatchObject([{ level: WARN, msg: 'upstream failed', cause }]);
    if (code !== undefined) expect(failures[0]?.code).toMatch(new RegExp(`^${code}$`));
    expect(request).toMatchObject({ level: WARN, status, cause });
  });

  it.each<[string, string, Behaviour]>([
    ['closes the connection', 'reset', breakMidAnswer({ 'content-length': '100' }, 'begun')],
    ['does not end', 'timeout', (_seen, response) => void response.writeHead(200).write('begun')],
  ])(
    'in the middle of its response %s: cause %s, beside the status that the client got',
    async (_t, cause, behaviour) => {
      const gateway = await startInProcess(configOf(await behaving(behaviour)(), { upstreamAnswerMs: 300 }));
      expect(await gateway.ask('GET', '/api/v1/open')).toMatchObject({ status: 200, broken: true });
      const { request, failures } = await linesOf(gateway);
      expect(failures).toMatchObject([{ level: WARN, msg: 'upstream failed', cause }]);
      expect(request).toMatchObject({ level: INFO, status: 200, cause, aborted: true });
    },
  );

  it('answers too late and then closes the connection: one failure, with an idempotency key', async () => {
    let release = (): void => {};
    const upstream = await startUpstream((_seen, response) => {
      release = () => void response.socket?.destroy();
    });
    const gateway = await startInProcess(keyedConfig(upstream.url, { upstreamTimeoutMs: 200 }));
    const headers = { 'idempotency-key': freshKey() };
    expect((await gateway.ask('POST', '/api/v1/open', headers, { body: 'x' })).status).toBe(504);
    release();
    await eventually(async () => /steps_total\{step="completed"\} 1/.test(await gateway.metrics()), 'the outcome');
    expect((await linesOf(gateway)).failures).toMatchObject([{ cause: 'timeout' }]);
    expect(await countsOf(gateway)).toEqual([expect.stringMatching(/cause="timeout"\} 1$/)]);
  });

  it('answers with an error of its own: no warning', async () => {
    const gateway = await startInProcess(configOf(await behaving(answer({ status: 500 }))()));
    expect((await gateway.ask('GET', '/api/v1/open')).status).toBe(500);
    const { request, failures } = await linesOf(gateway);
    expect(request).toMatchObject({ level: INFO, status: 500 });
    expect(request).not.toHaveProperty('cause');
    expect([failures, await countsOf(gateway)]).toEqual([[], []]);
  });
});

describe('what is not a failure of the upstream', () => {
  async function expectNone(gateway: InProcess): Promise<void> {
    const { request, failures } = await linesOf(gateway);
    expect(request).not.toHaveProperty('cause');
    expect([failures, await countsOf(gateway)]).toEqual([[], []]);
  }

  it('a client that disconnects', async () => {
    const hold = held();
    const gateway = await startInProcess(configOf(await behaving(hold.behaviour)()));
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('GET', '/api/v1/open', { 'x-api-key': TOKEN }));
    await eventually(() => hold.waiting() === 1, 'the request at the upstream');
    connection.destroy();
    await expectNone(gateway);
  });

  it('a client whose body stops', async () => {
    const gateway = await startInProcess(configOf(await behaving(answer())(), { upstreamTimeoutMs: 200 }));
    const connection = await openRaw(gateway.port);
    connection.write(`${rawRequest('POST', '/api/v1/open', { 'x-api-key': TOKEN, 'content-length': '9' })}half`);
    expect((await connection.waitFor(1))[0]?.status).toBe(408);
    await expectNone(gateway);
  });

  it('a body over the bound', async () => {
    const gateway = await startInProcess(configOf(await behaving(answer())(), { maxBodyBytes: 10 }));
    const connection = await openRaw(gateway.port);
    const headers = { 'x-api-key': TOKEN, 'transfer-encoding': 'chunked' };
    connection.write(`${rawRequest('POST', '/api/v1/open', headers)}b\r\n${'x'.repeat(11)}\r\n0\r\n\r\n`);
    expect((await connection.waitFor(1))[0]?.status).toBe(413);
    await expectNone(gateway);
  });

  it("the rest of the provider's own 429, which is discarded", async () => {
    const behaviour: Behaviour = (_seen, response) => {
      response.writeHead(429, { 'content-length': '100' });
      response.write('begun', () => response.socket?.destroy());
    };
    const gateway = await startInProcess(configOf(await behaving(behaviour)()));
    expect((await gateway.ask('GET', '/api/v1/open')).status).toBe(429);
    await expectNone(gateway);
  });

  it('the end of the gateway itself', async () => {
    const hold = held();
    const config = keyedConfig(await behaving(hold.behaviour)(), { drainMs: 1 });
    const gateway = await startInProcess(config);
    const headers = { 'idempotency-key': freshKey() };
    const reply = gateway.ask('POST', '/api/v1/open', headers, { body: 'x' }).catch(() => undefined);
    await eventually(() => hold.waiting() === 1, 'the request at the upstream');
    await gateway.stop();
    await reply;
    const request = await eventually(() => gateway.lines().find(({ msg }) => msg === 'request'), 'its line');
    expect(request).not.toHaveProperty('cause');
    expect(gateway.lines().filter(({ msg }) => /upstream/.test(String(msg)))).toEqual([]);
  });
});
