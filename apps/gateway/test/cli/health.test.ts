/** `headgate health` asks a running gateway whether it is ready: exit code 0, or 1 with one line that says why not. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCertificate } from 'headgate-testbed/certificate';
import { listen } from 'headgate-testbed/listen';
import { afterAll, expect, it } from 'vitest';
import { runCli } from '../../src/cli/cli.ts';
import { configOf, runHeadgate } from '../support/gateway.ts';
import { startInProcess, startMute } from '../support/in-process.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';

const folder = mkdtempSync(join(tmpdir(), 'headgate-health-'));
afterAll(() => rmSync(folder, { recursive: true }));

async function health(...args: string[]): Promise<{ code: number | undefined; out: string; error: string }> {
  const printed = { out: '', error: '' };
  const code = await runCli(['health', ...args], {
    out: (text) => {
      printed.out += text;
    },
    error: (text) => {
      printed.error += text;
    },
  });
  return { code, ...printed };
}

function file(config: object | string): string {
  const path = join(folder, 'config.json');
  writeFileSync(path, typeof config === 'string' ? config : JSON.stringify(config));
  return path;
}

const ok = { code: 0, out: 'ok\n', error: '' };
const notReady = (error: string) => ({ code: 1, out: '', error: `headgate: not ready: ${error}\n` });

it('asks the main listener, or the admin listener if there is one', async () => {
  const gateway = await startInProcess(configOf('http://127.0.0.1:1'));
  const { port, adminPort } = gateway;
  // An address for all is asked at the local one.
  expect(await health('--config', file({ listen: { host: '0.0.0.0', port } }))).toEqual(ok);
  expect(await health('--port', String(port))).toEqual(ok);
  expect(await health('--config', file({ listen: { port: 1 }, admin: { port: adminPort } }))).toEqual(ok);
  expect(await health('--config', file({ admin: { port: 1 } }), '--admin-port', String(adminPort))).toEqual(ok);
  expect(await health('--url', `http://127.0.0.1:${port}`)).toEqual(ok);
  expect(await health('--url', `http://127.0.0.1:${port}/livez`)).toEqual(ok);
  expect(await health('--config', file({ listen: { port }, admin: { port: 1 } }))).toEqual(
    notReady('http://127.0.0.1:1/readyz: ECONNREFUSED'),
  );
  // While a gateway runs, its file may be spoiled. It still runs with the config of before.
  const spoiled = { listen: { port }, keys: 'none', nonsense: 1 };
  expect(await health('--config', file(spoiled))).toEqual(ok);
});

it('a gateway that drains is not ready', async () => {
  const draining = await listen((_, response) => void response.writeHead(503).end('{"status":"draining"}'));
  const config = file({ admin: { port: draining.port } });
  expect(await health('--config', config)).toEqual(
    notReady(`http://127.0.0.1:${draining.port}/readyz: status 503, draining`),
  );
  await draining.close();
});

it('a server that does not respond in time, or with something else', async () => {
  const mute = await startMute();
  const url = `http://user:secret@127.0.0.1:${mute.port}/readyz?token=secret`;
  expect(await health('--url', url, '--timeout', '50')).toEqual(
    notReady(`http://127.0.0.1:${mute.port}/readyz: no response within 50 ms`),
  );
  const other = await listen((_, response) => void response.writeHead(404).end('secret'));
  expect(await health('--url', other.url)).toEqual(notReady(`${other.url}/readyz: status 404`));
  await other.close();
});

it('a server that switches to another protocol: exit 1, not an end without a verdict', async () => {
  const switching = '101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n';
  const upstream = await startRawUpstream((socket) => void socket.write(`HTTP/1.1 ${switching}`));
  const { code, all } = await runHeadgate(['health', '--url', upstream.url]);
  expect({ code, all: all.trim() }).toEqual({
    code: 1,
    all: `headgate: not ready: ${upstream.url}/readyz: status 101`,
  });
});

it('TLS: trusts the listener of the config, whose certificate is for other names; --url is verified', async () => {
  const { cert, key, certFile, keyFile, remove } = createCertificate();
  const server = createTlsServer({ cert, key }, (request, response) => {
    response.writeHead(request.url === '/readyz' ? 200 : 404).end('{"status":"degraded"}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const tls = { cert: certFile, key: keyFile };
  expect(await health('--config', file({ listen: { host: 'localhost', port, tls } }))).toEqual({
    ...ok,
    out: 'degraded\n',
  });
  expect(await health('--url', `https://127.0.0.1:${port}`)).toEqual(
    notReady(`https://127.0.0.1:${port}/readyz: DEPTH_ZERO_SELF_SIGNED_CERT`),
  );
  // Without a certificate of its own it cannot ask a listener that wants one.
  const mutual = { ...tls, clientCa: certFile };
  expect(await health('--config', file({ listen: { port, tls }, admin: { port: 1, tls: mutual } }))).toMatchObject({
    code: 0,
  });
  server.close();
  remove();
});

it.each<[args: string[], message: string]>([
  [['--config', 'x.json', '--url', 'http://a'], 'health takes --config or --url, not both'],
  [['--url', 'localhost:8080'], '--url must be a URL with http:// or https://'],
  [['--timeout', '0'], '--timeout must be a number of milliseconds, at most 999999'],
  [['--config', 'no-such.json'], '--config no-such.json: the file does not exist'],
  [['--port', '99999'], 'health: http://127.0.0.1:99999 is not the address of a listener: use --url'],
  [['--port', 'abc'], 'health: http://127.0.0.1:NaN is not the address of a listener: use --url'],
  [['--host', 'a b'], 'health: http://a b:8080 is not the address of a listener: use --url'],
  [['--port', '0'], 'health: the port is 0, so the config does not say which one it is: use --url'],
])('%j: exit 2', async (args, message) => {
  expect(await health(...args)).toEqual({ code: 2, out: '', error: `headgate: ${message} (see headgate --help)\n` });
});

it('a config that does not say where to ask: exit 2', async () => {
  const mutual = { port: 1, tls: { cert: 'a', key: 'b', clientCa: 'c' } };
  expect((await health('--config', file({ listen: mutual, admin: mutual }))).error).toContain(
    'each listener wants a certificate of its clients: use --url',
  );
  expect(await health('--config', file('{'))).toMatchObject({
    code: 2,
    error: expect.stringContaining('config.json:'),
  });
});

it('its flags are not those of other commands', async () => {
  const errors: string[] = [];
  const terminal = { out: () => {}, error: (text: string) => void errors.push(text) };
  expect(await runCli(['serve', '--url', 'http://a'], terminal)).toBe(2);
  expect(errors.join()).toContain('--url is only for health, not for serve');
});
