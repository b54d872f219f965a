/** Two gateways behind the real HAProxy, from the files of apps/gateway/docs/deploy: they serve through a reload, a restart and a crash. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterFile } from 'headgate-testbed/after-file';
import { findOrInstall } from 'headgate-testbed/find-program';
import { eventually, pause, send } from 'headgate-testbed/raw-http';
import { startRedis } from 'headgate-testbed/redis-server';
import { beforeAll, expect, it } from 'vitest';
import { config, DEPLOY, type DeployedConfig, ROOT, textOf } from '../support/deploy-files.ts';
import { freePort, type Gateway, scratchFolder, serve, writeConfig } from '../support/gateway.ts';

const agent = new Agent({ keepAlive: true, maxSockets: 8 });
const adminPorts: number[] = [];
const files: string[] = [];
const gateways: Gateway[] = [];
let httpsPort = 0;
let own: DeployedConfig;
let env: NodeJS.ProcessEnv;
let proxy: ChildProcess;
/** What HAProxy has logged. */
let proxyLog = '';
/** Makes a new certificate with the commands of the page. */
let makeCertificate: () => void;

beforeAll(async () => {
  const haproxy = findOrInstall(
    () => ['haproxy', '/usr/sbin/haproxy'].find((command) => runs(command, '-v')),
    'haproxy',
    'These tests need HAProxy: install it, so that haproxy is on the PATH.',
  );
  const redis = await startRedis();
  const upstreamPort = await freePort();
  const upstream = spawn(process.execPath, [join(DEPLOY, 'upstream.mjs')], { env: { PORT: String(upstreamPort) } });
  const ports = [await freePort(), await freePort()];
  adminPorts.push(await freePort(), await freePort());
  httpsPort = await freePort();
  own = { ...config, upstream: `http://127.0.0.1:${upstreamPort}` };
  env = { API_KEY: 'try-me', REDIS_URL: `redis://127.0.0.1:${redis.port}/0` };
  for (const [i, port] of ports.entries()) {
    files.push(writeConfig({ ...own, ...listeners(port, adminPorts[i] as number) }));
    gateways.push(await serve(['--config', files[i] as string, '--watch'], port, adminPorts[i], env));
  }
  findOrInstall(
    () => (runs('openssl', 'version') ? true : undefined),
    'openssl',
    'These tests need OpenSSL: install it, so that openssl is on the PATH.',
  );
  const folder = scratchFolder();
  const file = join(folder, 'haproxy.cfg');
  const page = readFileSync(join(ROOT, 'apps/gateway/docs/production.md'), 'utf8');
  const [commands = ''] = /^mkdir -p tls\n.*?^cat .*?$/ms.exec(page) ?? [];
  makeCertificate = () => void execFileSync('sh', ['-c', commands], { cwd: folder, stdio: 'pipe' });
  makeCertificate();
  // The key of the proxy is in both.
  for (const name of ['tls.key', 'tls.pem']) expect(statSync(join(folder, 'tls', name)).mode & 0o777).toBe(0o600);
  let text = textOf('haproxy.cfg').replace(':8443', `127.0.0.1:${httpsPort}`);
  text = text.replace('/etc/haproxy/tls/tls.pem', join(folder, 'tls/tls.pem'));
  for (const [i, port] of ports.entries()) text = text.replace(`gateway-${i + 1}:8080`, `127.0.0.1:${port}`);
  writeFileSync(file, text);
  execFileSync(haproxy, ['-c', '-q', '-f', file]);
  // -W as in the image: the primary reloads the certificate at SIGHUP.
  proxy = spawn(haproxy, ['-W', '-db', '-f', file], { stdio: ['ignore', 'pipe', 'ignore'] });
  proxy.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    proxyLog += chunk;
  });
  afterFile(async () => {
    agent.destroy();
    for (const child of [proxy, upstream]) child.kill();
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await redis.stop();
  });
  await eventually(
    () =>
      ask('/status').then(
        (status) => status === 200,
        () => false,
      ),
    'the proxy and a gateway',
  );
});

const listeners = (port: number, adminPort: number) => ({
  listen: { host: '127.0.0.1', port },
  admin: { host: '127.0.0.1', port: adminPort },
});

/** Status of a request through the proxy; 0 if its connection broke. */
function ask(path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { 'x-api-key': 'try-me' };
    const outgoing = request({ host: '127.0.0.1', port: httpsPort, path, headers, agent, rejectUnauthorized: false });
    outgoing.on('error', reject).on('response', (response) => {
      response.resume().on('close', () => resolve(response.complete ? (response.statusCode ?? 0) : 0));
    });
    outgoing.end();
  });
}

/** Sends requests on eight connections until `action` is over. Returns how many requests had which status. */
async function under(action: () => Promise<unknown>): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  let isOver = false;
  const client = async (): Promise<void> => {
    while (!isOver) {
      const status = await ask('/status').catch((error: NodeJS.ErrnoException) => error.code ?? 'error');
      counts[status] = (counts[status] ?? 0) + 1;
    }
  };
  const clients = Array.from({ length: 8 }, client);
  await action();
  isOver = true;
  await Promise.all(clients);
  return counts;
}

const metricsOf = async (index: number): Promise<string> =>
  (await send(adminPorts[index] as number, { path: '/metrics' })).text;

it('share one limit', async () => {
  const statuses: number[] = [];
  for (let i = 0; i < 61; i += 1) statuses.push(await ask('/api/v1/chats/1?account_id=acc_1'));
  expect(statuses.filter((status) => status === 200)).toHaveLength(60);
  expect(statuses.at(-1)).toBe(429);
});

it('take over a changed config under load without a failed request, and /metrics says so', async () => {
  const counts = await under(async () => {
    for (const [i, file] of files.entries()) {
      const routes = [...own.routes, { route: 'GET /later' }];
      writeFileSync(
        file,
        JSON.stringify({ ...own, routes, ...listeners(gateways[i]?.port ?? 0, adminPorts[i] as number) }),
      );
    }
    await eventually(
      async () => {
        const pages = await Promise.all([metricsOf(0), metricsOf(1)]);
        return pages.every((page) => page.includes('headgate_config_reloads_total{result="applied"} 1'));
      },
      'the reload of both',
      20_000,
    );
  });
  expect(Object.keys(counts)).toEqual(['200']);
  expect(await ask('/later')).toBe(200);
});

it('one of them ends under load without a failed request', async () => {
  const [first] = gateways as [Gateway];
  const counts = await under(async () => {
    first.signal('SIGTERM');
    expect(await first.exited).toEqual({ code: 0, signal: null });
  });
  expect(Object.keys(counts)).toEqual(['200']);
  expect(await ask('/status')).toBe(200);
});

it('one of them is killed under load: only the requests that it was serving fail, and none gets a 503', async () => {
  const [first, second] = gateways as [Gateway, Gateway];
  gateways[0] = await serve(['--config', files[0] as string, '--watch'], first.port, adminPorts[0], env);
  const served = /headgate_requests_total\{route="GET \/status",status="200"\} [1-9]/;
  await eventually(async () => {
    await ask('/status');
    return served.test(await metricsOf(0));
  }, 'its first request');
  const counts = await under(async () => {
    await eventually(async () => served.test(await metricsOf(1)), 'a request of the other');
    second.signal('SIGKILL');
    await second.exited;
    // Longer than HAProxy needs to notice: its check, and three tries of a request.
    await pause(5_000);
  });
  // HAProxy answers a running request with 502, or closes its connection if the gateway had served it before.
  const { 200: answered = 0, 502: refused = 0, ECONNRESET: closed = 0, ...others } = counts;
  expect(others).toEqual({});
  expect(answered).toBeGreaterThan(0);
  expect(refused + closed).toBeLessThanOrEqual(8);
});

it('the log of HAProxy has the path without the query, and the req_id of the log of the gateway', () => {
  const line = proxyLog.split('\n').find((each) => each.includes('GET /api/v1/chats/1'));
  const { req_id } = gateways[1]?.log().find((each) => each.route === 'GET /api/v1/chats/{chat_id}') ?? {};
  expect(line).toMatch(/ \{[\w-]+\} GET \/api\/v1\/chats\/1$/);
  expect(proxyLog).toContain(` {${req_id}} GET /api/v1/chats/1\n`);
  expect(proxyLog).not.toContain('account_id');
});

it('a renewed certificate is used after SIGHUP, and no request gets an error', async () => {
  const before = await fingerprint();
  const counts = await under(async () => {
    makeCertificate();
    proxy.kill('SIGHUP');
    await eventually(async () => (await fingerprint()) !== before, 'the new certificate', 20_000);
  });
  // The earlier worker closes connections that are idle, at any time as HTTP allows.
  const { ECONNRESET: _closed, ...statuses } = counts;
  expect(Object.keys(statuses)).toEqual(['200']);
});

/** Fingerprint of the certificate that the proxy shows; empty if it cannot be reached. */
function fingerprint(): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port: httpsPort, rejectUnauthorized: false });
    socket.on('error', () => resolve(''));
    socket.on('secureConnect', () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
  });
}

function runs(command: string, argument: string): boolean {
  try {
    execFileSync(command, [argument], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
