/** The real nginx and Caddy of Debian, with the configs of their pages, in front of a service and beside a gateway. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterFile } from 'headgate-testbed/after-file';
import { findOrInstall } from 'headgate-testbed/find-program';
import { type Ask, eventually, type Reply, send } from 'headgate-testbed/raw-http';
import { startUpstream, type Upstream } from 'headgate-testbed/upstream';
import { beforeAll, describe, expect, it } from 'vitest';
import { checkConfig } from '../../src/config/config.ts';
import { ADMIN, askAdmin } from '../support/admin.ts';
import { DECISIONS } from '../support/decisions.ts';
import { freePort, ratesOf, sha256, TOKEN } from '../support/gateway.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';

const PAGES = resolve(import.meta.dirname, '../../docs/other-proxies');
let upstream: Upstream;
let gateway: InProcess;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-proxies-'));
  afterFile(() => rmSync(folder, { recursive: true, force: true }));
  upstream = await startUpstream(async (seen, response) => {
    await seen.whole;
    // As a service that dies: the proxy gets no answer.
    if (seen.url.startsWith('/away')) {
      response.destroy();
      return;
    }
    const isOwn = seen.url.startsWith('/own');
    response.writeHead(isOwn ? 403 : 200, { 'x-ratelimit-limit': '7777' }).end('of the service');
  });
  gateway = await startInProcess({
    decisions: DECISIONS,
    clientAddress: { trustedProxies: ['loopback'] },
    keys: [{ sha256: sha256(TOKEN), application: 'app_1' }],
    admin: ADMIN,
    accounts: ['nginx', 'caddy', 'away_nginx', 'away_caddy'].map((id) => ({ id, application: 'app_1' })),
    routes: [
      { route: 'POST /chats', account: 'query.account_id' },
      { route: 'GET /away', account: 'query.account_id' },
      { route: 'GET /own', account: 'none' },
      { route: 'GET /login', public: true },
    ],
    limits: {
      default: { allMethods: ['6/1m'] },
      accounts: { nginx: { allMethods: ['2/1m'] }, caddy: { allMethods: ['2/1m'] } },
    },
  });
});

/** The config of a page, with the ports of this test in place of its own. */
async function configOf(page: string, language: string): Promise<{ readonly text: string; readonly port: number }> {
  const markdown = readFileSync(join(PAGES, page), 'utf8');
  const [, config = ''] = new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'ms').exec(markdown) ?? [];
  const port = await freePort();
  const text = config
    .replaceAll('127.0.0.1:9000', `127.0.0.1:${new URL(upstream.url).port}`)
    .replaceAll('127.0.0.1:8082', `127.0.0.1:${gateway.decisionsPort}`);
  return { text, port };
}

/** Starts a proxy, and waits until it listens. */
async function start(command: string, args: readonly string[], port: number): Promise<number> {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, HOME: folder } });
  let output = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  afterFile(async () => {
    child.kill('SIGTERM');
    await eventually(hasEnded, `the end of ${command}`);
  });
  await eventually(() => {
    if (hasEnded()) throw new Error(`${command} ended:\n${output}`);
    return send(port, { path: '/' }).then(
      () => true,
      () => false,
    );
  }, command);
  return port;
}

const PROXIES = {
  async nginx(): Promise<number> {
    const nginx = findOrInstall(
      () => ['nginx', '/usr/sbin/nginx'].find((command) => runs(command, '-v')),
      'nginx',
      'These tests need nginx: install it, so that nginx is on the PATH.',
    );
    const { text, port } = await configOf('nginx.md', 'nginx');
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${folder}/${name};`,
    );
    const http = `${paths.join(' ')} access_log off;\n${text.replace('listen 8080', `listen 127.0.0.1:${port}`)}`;
    const file = join(folder, 'nginx.conf');
    // As root, its workers would be another user, who may not write to the folder.
    const user = process.getuid?.() === 0 ? 'user root;' : '';
    writeFileSync(
      file,
      `${user} daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log stderr;\nevents {}\nhttp {\n${http}\n}\n`,
    );
    return start(nginx, ['-c', file, '-e', 'stderr', '-p', folder], port);
  },
  async caddy(): Promise<number> {
    const caddy = findOrInstall(
      () => ['caddy', '/usr/bin/caddy'].find((command) => runs(command, 'version')),
      'caddy',
      'These tests need Caddy: install it, so that caddy is on the PATH.',
    );
    const { text, port } = await configOf('caddy.md', 'caddyfile');
    const file = join(folder, 'Caddyfile');
    writeFileSync(file, `{\n\tadmin off\n\tauto_https off\n}\n${text.replace(':8080', `http://127.0.0.1:${port}`)}`);
    return start(caddy, ['run', '--config', file, '--adapter', 'caddyfile'], port);
  },
};

describe.each(['nginx', 'caddy'] as const)('%s', (name) => {
  let port = 0;
  beforeAll(async () => {
    port = await PROXIES[name]();
  });
  const ask = (path: string, more: Partial<Ask> = {}): Promise<Reply> =>
    send(port, { path, headers: { 'x-api-key': TOKEN }, ...more });
  const chats = (headers: Ask['headers'] = {}) => {
    const body = 'the body';
    return ask(`/chats?account_id=${name}&x=a%2Fb`, {
      method: 'POST',
      body,
      headers: { 'x-api-key': TOKEN, ...headers },
    });
  };

  it('forwards an accepted request whole, and its answer shows the fields of headgate', async () => {
    const before = upstream.seen.length;
    const accepted = await chats();
    expect(accepted).toMatchObject({ status: 200, text: 'of the service' });
    expect(accepted.headers['x-ratelimit-remaining']).toBe('1');
    expect(accepted.headers['x-ratelimit-limit']).toBe('2');
    expect(upstream.seen.slice(before)).toMatchObject([{ method: 'POST', url: `/chats?account_id=${name}&x=a%2Fb` }]);
    expect(upstream.seen.at(-1)?.body().toString()).toBe('the body');
  });

  it('a client cannot have another request judged: fields of proxies that it sends do not count', async () => {
    const before = upstream.seen.length;
    const forged = {
      'x-forwarded-uri': '/own',
      'x-forwarded-method': 'GET',
      'x-original-uri': '/own',
      'x-original-method': 'GET',
      'x-original-url': 'http://x/own',
    };
    expect(ratesOf(await chats(forged)).remaining).toBe(0);
    expect(upstream.seen.length).toBe(before + 1);
  });

  it('a rejected request gets the 429 of headgate with all its fields, and does not reach the service', async () => {
    const before = upstream.seen.length;
    const rejected = await chats();
    expect(rejected.status).toBe(429);
    expect(ratesOf(rejected)).toMatchObject({ limit: 2, remaining: 0, retryAfter: expect.any(Number) });
    expect(rejected.headers['content-type']).toMatch(/^application\/json/);
    const problem = JSON.parse(rejected.text);
    expect(problem).toMatchObject({ type: 'api/too_many_requests', status: 429 });
    expect(rejected.headers['x-request-id']).toBe(problem.req_id);
    expect(upstream.seen.length).toBe(before);
  });

  it('refunds a request that its service did not get, and the client gets a 502', async () => {
    const left = async () => (await askAdmin(gateway.adminPort, 'GET', `/v1/windows?account=away_${name}`)).text;
    const reply = await ask(`/away?account_id=away_${name}`);
    expect(reply.status).toBe(502);
    expect(ratesOf(reply).remaining).toBeUndefined();
    await eventually(async () => (await left()).includes('"used":0'), 'the refund');
    expect(await gateway.metrics()).toMatch(/headgate_refunds_total\{route="GET \/away"\} [1-9]/);
  });

  it('without a key 401, for an unknown route 404; a 403 of the service itself passes', async () => {
    const noKey = await ask('/own', { headers: {} });
    expect(noKey).toMatchObject({ status: 401 });
    expect(JSON.parse(noKey.text)).toMatchObject({ type: 'errors/missing_credentials' });
    expect(noKey.headers['www-authenticate']).toContain('Bearer');
    const unknown = await ask('/nowhere');
    expect(unknown.status).toBe(404);
    expect(JSON.parse(unknown.text)).toMatchObject({ type: 'errors/resource_not_found' });
    expect(await ask('/own')).toMatchObject({ status: 403, text: 'of the service' });
  });

  it('an unlimited route shows no field of headgate', async () => {
    const { limit: _, ...rates } = ratesOf(await ask('/own'));
    expect(rates).toEqual({ remaining: undefined, reset: undefined, retryAfter: undefined });
  });

  it('a public route counts by the address of the client, which a client cannot choose', async () => {
    const remaining = async (address: string) =>
      ratesOf(await ask('/login', { headers: { 'x-forwarded-for': address } })).remaining;
    const first = await remaining('192.0.2.1');
    expect(await remaining('192.0.2.2')).toBe(Number(first) - 1);
  });
});

it.each([
  ['nginx.md', 'decisions', 8082],
  ['caddy.md', 'decisions', 8082],
  ['traefik.md', 'decisions', 8082],
  ['envoy.md', 'rateLimitService', 8083],
] as const)('the config of headgate on %s is valid', (page, listener, port) => {
  const [, text = ''] = /^```json\n(.*?)^```/ms.exec(readFileSync(join(PAGES, page), 'utf8')) ?? [];
  process.env.API_KEY ??= 'the-key-of-the-page';
  process.env.RECEIPT_SECRET ??= DECISIONS.secret;
  expect(checkConfig(JSON.parse(text), page)[listener]?.port).toBe(port);
});

function runs(command: string, argument: string): boolean {
  try {
    execFileSync(command, [argument], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
