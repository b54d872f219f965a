/** Bodies are streamed both ways, and bounded. */
import { createHash, randomBytes } from 'node:crypto';
import { request } from 'node:http';
import { eventually, openRaw, rawRequest } from 'headgate-testbed/raw-http';
import { answer } from 'headgate-testbed/upstream';
import { describe, expect, it } from 'vitest';
import { gatewayForFile } from '../support/for-file.ts';
import { configOf, expectProblem, startGateway, TOKEN } from '../support/gateway.ts';
import { keyedConfig } from '../support/keyed.ts';

const MAX_BODY = 24 * 1024 * 1024;

const { upstream, gateway } = await gatewayForFile(configOf, {
  maxBodyBytes: MAX_BODY,
  upstreamTimeoutMs: 3_000,
  limits: { default: { allMethods: ['1000/1m'] } },
});

const OPEN = '/api/v1/open';
const headers = { 'x-api-key': TOKEN };

describe('down', () => {
  it("the first byte reaches the client before the upstream's end", async () => {
    let end: () => void = () => {};
    upstream.behave((_seen, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' });
      response.write('first');
      end = () => response.end(' last');
    });
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('GET', OPEN, headers));
    await eventually(() => connection.received().includes('first'), 'the first byte');
    expect(connection.received()).not.toContain('last');
    end();
    const [reply] = await connection.waitFor(1);
    connection.destroy();
    expect(reply?.text).toBe('first last');
  });

  it('the head alone reaches the client before any byte', async () => {
    let end: () => void = () => {};
    upstream.behave((_seen, response) => {
      response.writeHead(200, { 'x-head': 'here' });
      response.flushHeaders();
      end = () => response.end('body');
    });
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('GET', OPEN, headers));
    await eventually(() => connection.received().includes('x-head: here'), 'the head');
    end();
    await connection.waitFor(1);
    connection.destroy();
  });

  it('20 MiB arrive complete', async () => {
    const body = randomBytes(20 * 1024 * 1024);
    upstream.behave(answer({ body, headers: {} }));
    const reply = await gateway.ask('GET', OPEN);
    expect(reply.broken).toBe(false);
    expect(reply.body.equals(body)).toBe(true);
  });

  it('a client that leaves ends the exchange with the upstream', async () => {
    upstream.behave((_seen, response) => {
      response.writeHead(200);
      response.write('x');
    });
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('GET', OPEN, headers));
    await eventually(() => connection.received().includes('\r\n\r\n'), 'the head');
    connection.destroy();
    expect(await upstream.last().over).toBe(false);
    expect((await gateway.ask('GET', '/healthz')).status).toBe(200);
  });
});

describe('up', () => {
  it('20 MiB arrive complete', async () => {
    const body = randomBytes(20 * 1024 * 1024);
    const reply = await gateway.ask('POST', OPEN, {}, { body });
    expect(reply.status).toBe(200);
    expect(upstream.last().sha256()).toBe(createHash('sha256').update(body).digest('hex'));
  });

  it("the first bytes reach the upstream before the client's end", async () => {
    const upload = request({
      port: gateway.port,
      host: '127.0.0.1',
      method: 'POST',
      path: OPEN,
      headers,
      agent: false,
    });
    const status = new Promise<number | undefined>((resolve, reject) => {
      upload.on('response', (reply) => resolve(reply.resume().statusCode)).on('error', reject);
    });
    upload.write('first');
    await eventually(() => upstream.seen.length > 0 && upstream.last().bytes() === 5, 'the first bytes');
    upload.end(' last');
    expect(await status).toBe(200);
    expect(upstream.last().body().toString()).toBe('first last');
  });

  it('an upstream that answers before it has read everything: its answer is passed on', async () => {
    upstream.behave((_seen, response) => {
      response.writeHead(422, { 'content-type': 'text/plain', connection: 'close' });
      response.end('enough');
    });
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('POST', OPEN, { ...headers, 'content-length': '1000' }));
    connection.write('begin');
    const [reply] = await connection.waitFor(1);
    connection.destroy();
    expect(reply).toMatchObject({ status: 422, text: 'enough' });
    expect((await gateway.ask('GET', '/healthz')).status).toBe(200);
  });

  it('a client that leaves during an upload: the upstream never sees a whole request', async () => {
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('POST', OPEN, { ...headers, 'content-length': '1000' }));
    connection.write('begin');
    await eventually(() => upstream.seen.length > 0 && upstream.last().bytes() > 0, 'the first bytes');
    connection.destroy();
    expect(await upstream.last().whole).toBe(false);
    expect((await gateway.ask('GET', '/healthz')).status).toBe(200);
  });

  it('a Content-Length over maxBodyBytes gets 413 before the body is read', async () => {
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('POST', OPEN, { ...headers, 'content-length': String(MAX_BODY + 1) }));
    const [reply] = await connection.waitFor(1);
    connection.destroy();
    expectProblem(reply as never, 413, 'errors/payload_too_large');
    expect(upstream.seen).toHaveLength(0);
  });

  it('Expect: 100-continue with a length over maxBodyBytes gets 413, not 100', async () => {
    const connection = await openRaw(gateway.port);
    const expecting = { ...headers, expect: '100-continue', 'content-length': String(MAX_BODY + 1) };
    connection.write(rawRequest('POST', OPEN, expecting));
    const [reply] = await connection.waitFor(1);
    connection.destroy();
    expectProblem(reply as never, 413, 'errors/payload_too_large');
    expect(connection.received()).not.toContain('100 Continue');
  });

  it('a chunked body over maxBodyBytes gets 413, and never arrives complete', async () => {
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('POST', OPEN, { ...headers, 'transfer-encoding': 'chunked' }));
    const chunk = Buffer.concat([Buffer.from('100000\r\n'), Buffer.alloc(0x100000), Buffer.from('\r\n')]);
    for (let sent = 0; sent <= MAX_BODY && !connection.socket.destroyed; sent += 0x100000) connection.write(chunk);
    const [reply] = await connection.waitFor(1);
    connection.destroy();
    expectProblem(reply as never, 413, 'errors/payload_too_large');
    for (const seen of upstream.seen) expect(await seen.whole).toBe(false);
    expect((await gateway.ask('GET', '/healthz')).status).toBe(200);
  });

  it.each(['streamed', 'buffered'])('many pieces of one byte get 400 if the body is %s', async (how) => {
    const buffering = how === 'buffered' ? await startGateway(keyedConfig(upstream.url)) : undefined;
    const path = buffering ? '/api/v1/emails' : OPEN;
    const chunked = { ...headers, 'content-type': 'application/json', 'transfer-encoding': 'chunked' };
    const connection = await openRaw((buffering ?? gateway).port);
    connection.write(rawRequest('POST', path, { ...chunked, 'idempotency-key': 'tiny-pieces' }));
    connection.write('1\r\n \r\n'.repeat(20_000));
    const [reply] = await connection.waitFor(1);
    connection.destroy();
    await buffering?.stop();
    expect(expectProblem(reply as never, 400, 'errors/malformed_request').detail).toContain('send larger pieces');
    for (const seen of upstream.seen) expect(await seen.whole).toBe(false);
  });

  it('8,192 pieces of one byte, and more pieces of ten, arrive', async () => {
    upstream.behave(answer({ body: 'ok' }));
    for (const body of ['1\r\nx\r\n'.repeat(8_192), 'a\r\n1234567890\r\n'.repeat(20_000)]) {
      const connection = await openRaw(gateway.port);
      connection.write(rawRequest('POST', OPEN, { ...headers, 'transfer-encoding': 'chunked' }));
      connection.write(`${body}0\r\n\r\n`);
      const [reply] = await connection.waitFor(1);
      connection.destroy();
      expect(reply?.status).toBe(200);
    }
  });
});
