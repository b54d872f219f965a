/** Defects that attacks on the process have found. */
import { spawn } from 'node:child_process';
import { eventually, openRaw, rawRequest } from 'headgate-testbed/raw-http';
import { describe, expect, it } from 'vitest';
import { gatewayForFile } from '../support/for-file.ts';
import { configOf, expectProblem, HEADGATE, TOKEN, writeConfig } from '../support/gateway.ts';

const { upstream, gateway } = await gatewayForFile(configOf);

describe('the gateway and the upstream see the same account', () => {
  it.each([
    ['named in Connection', { connection: 'x-account-id' }],
    ['given again with underscores', { 'x_account-id': 'acc_2' }],
  ])('an account header %s: 400, never forwarded', async (_title, headers) => {
    const before = upstream.seen.length;
    const reply = await gateway.ask('POST', '/api/v1/messages', { 'x-account-id': 'acc_1', ...headers });
    expectProblem(reply, 400, 'errors/malformed_request');
    expect(upstream.seen).toHaveLength(before);
  });
});

it.each([
  [304, { etag: '"x"', 'content-length': '5' }],
  [204, { 'content-length': '5' }],
])('a %d with a Content-Length is a complete answer, and the connection stays usable', async (status, headers) => {
  upstream.behave((_seen, response) => {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    response.socket?.end(`HTTP/1.1 ${status} Whatever\r\n${lines.join('')}\r\n`);
  });
  const connection = await openRaw(gateway.port);
  connection.write(rawRequest('GET', '/api/v1/open', { 'x-api-key': TOKEN }).repeat(2));
  // The raw client's own reader would wait for the body that never comes.
  const statuses = () => [...connection.received().matchAll(/^HTTP\/1\.1 (\d+)/gm)].map((match) => Number(match[1]));
  await eventually(() => statuses().length === 2, 'both answers');
  expect(statuses()).toEqual([status, status]);
  connection.destroy();
});

it('CONNECT after a running request is answered after it', async () => {
  upstream.behave((_seen, response) => void setTimeout(() => response.end('slow'), 100));
  const connection = await openRaw(gateway.port);
  connection.write(
    `${rawRequest('GET', '/api/v1/open', { 'x-api-key': TOKEN })}CONNECT h:80 HTTP/1.1\r\nhost: h\r\n\r\n`,
  );
  await connection.closed;
  expect(connection.replies().map(({ status }) => status)).toEqual([200, 400]);
});

it('a stalled reader of the log does not keep the process from ending', async () => {
  const config = writeConfig({ ...configOf(upstream.url), listen: { port: 0 }, drainMs: 200 });
  const child = spawn(process.execPath, [HEADGATE, 'serve', '--config', config], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  // The reader reads once, for the port, and then never again.
  const port = await new Promise<number>((resolve) => {
    child.stdout.once('data', (data) => {
      child.stdout.pause();
      resolve(
        JSON.parse(
          String(data)
            .split('\n')
            .find((line) => line.includes('"listening"')) as string,
        ).port,
      );
    });
  });
  const ask = () => fetch(`http://127.0.0.1:${port}/nowhere`).then((reply) => reply.text());
  for (let i = 0; i < 20; i++) await Promise.all(Array.from({ length: 100 }, ask));
  child.kill('SIGTERM');
  expect(await Promise.race([exited, eventually(() => false, 'nothing', 5_000).catch(() => 'still alive')])).toBe(0);
});
