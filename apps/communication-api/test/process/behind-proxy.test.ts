/** The unit and the Caddyfile for operators: two processes as they start them, behind the real Caddy. */
import { randomBytes, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { startRedis } from '../../../../test/support/redis-server.ts';
import { Accounts } from '../../src/accounts/accounts.ts';
import { readConfig } from '../../src/config.ts';
import { type Database, openServer } from '../../src/db/database.ts';
import { newId } from '../../src/domain/ids.ts';
import { Envelope } from '../../src/security/envelope.ts';
import { Events } from '../../src/webhooks/events.ts';
import { cleanUpLater } from '../support/clean-up.ts';
import { deployText } from '../support/deploy-files.ts';
import { freePort } from '../support/free-port.ts';
import { startProgram } from '../support/program.ts';
import { type RunningProcess, runProcess, runToEnd } from '../support/service-process.ts';
import { createTestDatabase } from '../support/test-database.ts';

const API = 'api.example.test';
const WIZARD = 'connect.example.test';

/** The environment that the unit gives to an instance. */
const unitEnvironment = (instance: number): Record<string, string> =>
  Object.fromEntries(
    [...deployText('communication-api@.service').matchAll(/^Environment=(.+)$/gm)]
      .flatMap(([, line = '']) => line.split(' '))
      .map((pair) => pair.replace('%i', String(instance)).split('=') as [string, string]),
  );

let environment: Record<string, string>;
let db: Database;
let httpsPort: number;
let proxyPort: string;
let token: string;
const processes: RunningProcess[] = [];
const agent = new Agent({ keepAlive: true, maxSockets: 8, rejectUnauthorized: false });

beforeAll(async () => {
  const { url: DATABASE_URL, drop } = await createTestDatabase();
  cleanUpLater(drop);
  const redis = await startRedis();
  cleanUpLater(() => redis.stop());
  const [PORT, ADMIN_PORT] = [await freePort(), await freePort()];
  proxyPort = await freePort();
  environment = {
    ...{ DATABASE_URL, REDIS_URL: `redis://127.0.0.1:${redis.port}`, PORT, ADMIN_PORT },
    SECRET_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    ...{ BASE_URL: `https://${API}`, AUTH_URL: `https://${WIZARD}`, TRUSTED_PROXIES: '127.0.0.1' },
  };
  db = openServer(DATABASE_URL, () => undefined);
  cleanUpLater(() => db.destroy());
  expect((await runToEnd(['migrate'], environment)).code).toBe(0);
  token = (await runToEnd(['create-key', '--application', 'Shop'], environment)).out.trim();
  processes.push(startInstance(1), startInstance(2));
  await Promise.all(processes.map(({ ready }) => ready()));
  httpsPort = await startCaddy(PORT, ADMIN_PORT);
  cleanUpLater(() => agent.destroy());
  await vi.waitFor(async () => expect(await get('/healthz')).toBe(200), { timeout: 20_000, interval: 100 });
}, 90_000);

const startInstance = (instance: number): RunningProcess =>
  runProcess(['start'], { ...unitEnvironment(instance), ...environment });

/** Caddy with the Caddyfile, with ports of its own and certificates of its own authority. */
function startCaddy(port: string, adminPort: string): Promise<number> {
  return startProgram('caddy', 'caddy', (https, folder) => {
    const options = ['local_certs', 'skip_install_trust', 'admin off', 'auto_https disable_redirects'];
    const text = deployText('Caddyfile')
      .replaceAll('127.0.0.1:2020', `127.0.0.1:${proxyPort}`)
      .replace('health_port 9090', `health_port ${adminPort}`)
      .replace(/^\{$/m, `{\n${[...options, `https_port ${https}`].join('\n')}`);
    const [file, variables] = [join(folder, 'Caddyfile'), join(folder, 'env')];
    writeFileSync(file, text);
    writeFileSync(variables, `HOSTS="${API}, ${WIZARD}"\nPROCESSES="127.0.0.11:${port} 127.0.0.12:${port}"\n`);
    return ['run', '--config', file, '--adapter', 'caddyfile', '--envfile', variables];
  });
}

interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: each operation has its own body
  readonly body: any;
}

/** A request through the proxy. It rejects if there is no certificate for the host, or if the connection breaks. */
function ask(method: string, path: string, { host = API, body, headers = {} }: AskOptions = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        ...{ agent, method, path, host: '127.0.0.1', port: httpsPort, servername: host },
        headers: { host, 'x-api-key': token, ...(body && { 'content-type': 'application/json' }), ...headers },
      },
      async (response) => {
        const text = (await response.toArray().catch(reject))?.join('') ?? '';
        resolve({ status: response.statusCode ?? 0, body: text.startsWith('{') ? JSON.parse(text) : text });
      },
    );
    outgoing.on('error', reject).end(body === undefined ? undefined : JSON.stringify(body));
  });
}
interface AskOptions {
  readonly host?: string;
  readonly body?: object;
  readonly headers?: Record<string, string>;
}
const get = async (path: string, host = API): Promise<number> => (await ask('GET', path, { host })).status;

/** A linked mailbox of the mock. */
async function newAccount(): Promise<string> {
  const { id } = await db.selectFrom('applications').select('id').executeTakeFirstOrThrow();
  const envelope = new Envelope(readConfig(environment).SECRET_KEYS ?? []);
  const account = await new Accounts(db, envelope, Date.now, new Events(Date.now)).insert(id, {
    ...{ provider: 'mock', providerUserId: randomUUID(), name: 'me@mock.test', scopeId: null },
    secret: { credentials: { drafts: true } },
  });
  return account?.id ?? '';
}

const email = (account_id: string) => ({ account_id, to: [{ identifier: 'ann@mock.test' }], body: 'Hello' });

describe('the hosts', () => {
  test('of the service have certificates, also custom domains that are verified, and no others', async () => {
    const { id } = await db.selectFrom('applications').select('id').executeTakeFirstOrThrow();
    const domain = { application_id: id, purpose: 'auth' as const, created_at: new Date() };
    for (const [host, status] of [
      ['mail.shop.test', 'verified'],
      ['new.shop.test', 'pending'],
    ] as const)
      await db
        .insertInto('domains')
        .values({ ...domain, id: newId('dom', Date.now()), host, status })
        .execute();
    const reached = (host: string) => get('/healthz', host).catch(() => 'no certificate');
    for (const host of [API, WIZARD, 'mail.shop.test']) expect(await reached(host), host).toBe(200);
    for (const host of ['new.shop.test', 'evil.test']) expect(await reached(host), host).toBe('no certificate');
  });

  test('do not serve what is for the proxy and for operators', async () => {
    for (const path of ['/internal/tls-ask?domain=mail.shop.test', '/internal/', '/metrics', '/readyz'])
      expect(await get(path), path).toBe(404);
    expect((await fetch(`http://127.0.0.1:${proxyPort}/internal/tls-ask?domain=${API}`)).status).toBe(200);
  });
});

test('links are on the host of the wizard, which serves its pages', async () => {
  const expires_on = new Date(Date.now() + 60_000).toISOString();
  const link = { providers: 'mock', redirect_uri: 'https://app.example/cb', expires_on };
  const { body } = await ask('POST', '/v2/auth/link', { body: link });
  const { host, pathname } = new URL(body.link);
  expect(host).toBe(WIZARD);
  const page = await ask('GET', pathname, { host });
  expect([200, 302, 303]).toContain(page.status);
});

test('both processes count one allowance', async () => {
  const account_id = await newAccount();
  expect((await ask('PUT', '/v2/limits', { body: { account_id, windows: ['6/1m'] } })).status).toBe(200);
  // The other process notices it within a second.
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => ask('POST', '/api/v1/emails', { body: email(account_id) })),
  );
  const statuses = answers.map(({ status }) => status).sort();
  expect(statuses).toEqual([201, 201, 201, 201, 201, 201, 429, 429, 429, 429]);
});

test('the processes are restarted one after the other under load: no request fails, and each email is sent once', async () => {
  let isOver = false;
  const sent: string[] = [];
  const failures: string[] = [];
  const client = async (): Promise<void> => {
    while (!isOver) {
      // An account of its own for a few emails, so that no limit is in the way.
      const account = await newAccount();
      for (let i = 0; i < 5; i++) {
        const headers = { 'idempotency-key': randomUUID() };
        const answer = await ask('POST', '/api/v1/emails', { body: email(account), headers }).catch((error: Error) => ({
          status: 0,
          body: error.message,
        }));
        if (answer.status === 201) sent.push(answer.body.tracking_id);
        else failures.push(`${answer.status} ${JSON.stringify(answer.body)}`);
      }
    }
  };
  const before = await received();
  const clients = Array.from({ length: 4 }, client);
  try {
    for (const instance of [1, 2]) {
      const old = processes[instance - 1] as RunningProcess;
      const atStart = sent.length;
      old.child.kill('SIGTERM');
      expect(await old.exit).toBe(0);
      expect(sent.length).toBeGreaterThan(atStart);
      const next = startInstance(instance);
      processes[instance - 1] = next;
      await next.ready();
      // The proxy takes it back before the other one ends.
      await expect.poll(() => isReady(instance), { timeout: 10_000 }).toBe(true);
      await new Promise((resolve) => setTimeout(resolve, 2_000));
    }
  } finally {
    isOver = true;
    await Promise.all(clients);
  }
  expect(failures).toEqual([]);
  expect(new Set(sent).size).toBe(sent.length);
  expect((await received()) - before).toBe(sent.length);
});

const isReady = async (instance: number): Promise<boolean> =>
  (await fetch(`http://127.0.0.1${instance}:${environment.ADMIN_PORT}/readyz`).catch(() => undefined))?.status === 200;

const received = async (): Promise<number> => {
  const { count } = await db
    .selectFrom('mock_messages')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
};

test('a client cannot escape the limit of wrong keys by a false address', async () => {
  const statuses: number[] = [];
  for (let i = 0; i < 50 && !statuses.includes(429); i++) {
    const headers = { 'x-api-key': `wrong${i}`, 'x-forwarded-for': `192.0.2.${i}` };
    statuses.push((await ask('GET', '/v2/accounts', { headers })).status);
  }
  expect(statuses).toContain(429);
});
