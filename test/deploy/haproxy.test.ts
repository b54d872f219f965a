/** Two gateways behind the real HAProxy, from the files of docs/deploy: they serve through a reload and a restart. */
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { afterFile } from '../support/after-file.ts';
import { config, DEPLOY, type DeployedConfig, ROOT, textOf } from '../support/deploy-files.ts';
import { findOrInstall } from '../support/find-program.ts';
import { freePort, type Gateway, scratchFolder, serve, writeConfig } from '../support/gateway.ts';
import { eventually, send } from '../support/raw-http.ts';
import { startRedis } from '../support/redis-server.ts';

const agent = new Agent({ keepAlive: true, maxSockets: 8 });
const adminPorts: number[] = [];
const files: string[] = [];
const gateways: Gateway[] = [];
let httpsPort = 0;
let own: DeployedConfig;

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
  for (const [i, port] of ports.entries()) {
    files.push(writeConfig({ ...own, ...listeners(port, adminPorts[i] as number) }));
    const env = { API_KEY: 'try-me', REDIS_URL: `redis://127.0.0.1:${redis.port}/0` };
    gateways.push(await serve(['--config', files[i] as string, '--watch'], port, adminPorts[i], env));
  }
  findOrInstall(
    () => (runs('openssl', 'version') ? true : undefined),
    'openssl',
    'These tests need OpenSSL: install it, so that openssl is on the PATH.',
  );
  const folder = scratchFolder();
  const [pem, file] = [join(folder, 'tls.pem'), join(folder, 'haproxy.cfg')];
  // The commands of the page.
  const [commands = ''] = /^openssl .*\ncat .*$/m.exec(readFileSync(join(ROOT, 'docs/production.md'), 'utf8')) ?? [];
  execFileSync('sh', ['-c', commands], { cwd: folder, stdio: 'pipe' });
  let text = textOf('haproxy.cfg').replace(':8443', `127.0.0.1:${httpsPort}`).replace('/etc/haproxy/tls.pem', pem);
  for (const [i, port] of ports.entries()) text = text.replace(`gateway-${i + 1}:8080`, `127.0.0.1:${port}`);
  writeFileSync(file, text);
  execFileSync(haproxy, ['-c', '-q', '-f', file]);
  const proxy = spawn(haproxy, ['-db', '-f', file], { stdio: 'ignore' });
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
}, 120_000);

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
}, 60_000);

it('one of them ends under load without a failed request', async () => {
  const [first] = gateways as [Gateway];
  const counts = await under(async () => {
    first.signal('SIGTERM');
    expect(await first.exited).toEqual({ code: 0, signal: null });
  });
  expect(Object.keys(counts)).toEqual(['200']);
  expect(await ask('/status')).toBe(200);
}, 60_000);

function runs(command: string, argument: string): boolean {
  try {
    execFileSync(command, [argument], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
