import { randomBytes, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { startRedis } from 'headgate-testbed/redis-server';
import { expect, vi } from 'vitest';
import { Accounts } from '../../src/accounts/accounts.ts';
import { readConfig } from '../../src/config.ts';
import { type Database, openServer } from '../../src/db/database.ts';
import { Envelope } from '../../src/security/envelope.ts';
import { Events } from '../../src/webhooks/events.ts';
import { cleanUpLater } from './clean-up.ts';
import { deployText } from './deploy-files.ts';
import { freePort } from './free-port.ts';
import { startProgram } from './program.ts';
import { type RunningProcess, runProcess, runToEnd } from './service-process.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { createTestDatabase } from './test-database.ts';

export const API = 'api.example.test';
export const WIZARD = 'connect.example.test';

/** The answer of the proxy. */
export interface ProxyAnswer {
  readonly status: number;
  /** Some fields of the body, which are undefined in others. */
  readonly body: { readonly link?: string; readonly tracking_id?: string };
  readonly text: string;
}

export interface AskOptions {
  readonly host?: string;
  readonly body?: object;
  readonly headers?: Record<string, string>;
}

/** Two processes as the unit starts them, on PostgreSQL and Redis, behind the real Caddy with the Caddyfile. */
export interface Deployment {
  readonly db: Database;
  /** Of an application for development. */
  readonly token: string;
  readonly applicationId: string;
  /** By their number, from 1. */
  readonly processes: Map<number, RunningProcess>;
  readonly httpsPort: number;
  /** The port on which the proxy asks which hosts get a certificate. */
  readonly innerPort: string;
  /** Starts a process, and waits until it listens. */
  start(instance: number): Promise<void>;
  /** The origin of one process, for requests that bypass the proxy. */
  urlOf(instance: number, port?: 'api' | 'admin'): string;
  /** A request through the proxy. It rejects if the host gets no certificate, or if the connection breaks. */
  ask(method: string, path: string, options?: AskOptions): Promise<ProxyAnswer>;
  /** A new linked mailbox of the mock. @returns its id */
  newAccount(): Promise<string>;
}

/** Starts everything. It ends after the test file. */
export async function startDeployment(): Promise<Deployment> {
  const { url: DATABASE_URL, drop } = await createTestDatabase();
  cleanUpLater(drop);
  const redis = await startRedis();
  cleanUpLater(() => redis.stop());
  const [PORT, ADMIN_PORT, innerPort] = [await freePort(), await freePort(), await freePort()];
  const secrets = { 'database-url': DATABASE_URL, 'secret-keys': `k1:${randomBytes(32).toString('base64')}` };
  const settings = {
    ...{ REDIS_URL: `redis://127.0.0.1:${redis.port}`, PORT, ADMIN_PORT },
    ...{ BASE_URL: `https://${API}`, AUTH_URL: `https://${WIZARD}`, TRUSTED_PROXIES: '127.0.0.1' },
  };
  const credentials = temporaryFolder();
  for (const [name, text] of Object.entries(secrets)) writeFileSync(join(credentials, name), `${text}\n`);
  const environmentOf = (instance: number) => ({ ...unitEnvironment(instance, credentials), ...settings });
  const db = openServer(DATABASE_URL, () => undefined);
  cleanUpLater(() => db.destroy());
  expect((await runToEnd(['migrate'], environmentOf(1))).code).toBe(0);
  const token = (await runToEnd(['create-key', '--application', 'Shop'], environmentOf(1))).out.trim();
  const { id: applicationId } = await db.selectFrom('applications').select('id').executeTakeFirstOrThrow();
  const processes = new Map<number, RunningProcess>();
  const start = async (instance: number): Promise<void> => {
    const started = runProcess(['start'], environmentOf(instance));
    processes.set(instance, started);
    await started.ready();
  };
  await Promise.all([start(1), start(2)]);
  const httpsPort = await startCaddy(PORT, ADMIN_PORT, innerPort);
  const ask = asker(httpsPort, token);
  await vi.waitFor(async () => expect((await ask('GET', '/healthz')).status).toBe(200), { timeout: 20_000 });
  const accounts = new Accounts(
    db,
    new Envelope(readConfig(environmentOf(1)).SECRET_KEYS ?? []),
    Date.now,
    new Events(Date.now),
  );
  const newAccount = async (): Promise<string> => {
    const account = await accounts.insert(applicationId, {
      ...{ provider: 'mock', providerUserId: randomUUID(), name: 'me@mock.test', scopeId: null },
      secret: { credentials: { drafts: true } },
    });
    return account?.id ?? '';
  };
  const urlOf = (instance: number, port: 'api' | 'admin' = 'api') =>
    `http://127.0.0.1${instance}:${port === 'api' ? PORT : ADMIN_PORT}`;
  return { db, token, applicationId, processes, httpsPort, innerPort, start, urlOf, ask, newAccount };
}

/** The environment that the unit gives to an instance. */
const unitEnvironment = (instance: number, credentials: string): Record<string, string> =>
  Object.fromEntries(
    [...deployText('communication-api@.service').matchAll(/^Environment=(.+)$/gm)]
      .flatMap(([, line = '']) => line.split(' '))
      .map((pair) => pair.replace('%i', String(instance)).replace('%d', credentials).split('=') as [string, string]),
  );

/** Caddy with the Caddyfile, on free ports and with certificates of its own authority. */
function startCaddy(port: string, adminPort: string, innerPort: string): Promise<number> {
  return startProgram('caddy', 'caddy', (https, folder) => {
    const options = ['local_certs', 'skip_install_trust', 'admin off', 'auto_https disable_redirects'];
    const text = deployText('Caddyfile')
      .replaceAll('127.0.0.1:2020', `127.0.0.1:${innerPort}`)
      .replace('health_port 9090', `health_port ${adminPort}`)
      .replace(/^\{$/m, `{\n${[...options, `https_port ${https}`].join('\n')}`);
    const [file, variables] = [join(folder, 'Caddyfile'), join(folder, 'env')];
    writeFileSync(file, text);
    writeFileSync(variables, `HOSTS="${API}, ${WIZARD}"\nPROCESSES="127.0.0.11:${port} 127.0.0.12:${port}"\n`);
    return ['run', '--config', file, '--adapter', 'caddyfile', '--envfile', variables];
  });
}

function asker(port: number, token: string): Deployment['ask'] {
  const agent = new Agent({ keepAlive: true, maxSockets: 8, rejectUnauthorized: false });
  cleanUpLater(() => agent.destroy());
  return (method, path, { host = API, body, headers = {} } = {}) =>
    new Promise((resolve, reject) => {
      const outgoing = request(
        {
          ...{ agent, method, path, host: '127.0.0.1', port, servername: host },
          headers: { host, 'x-api-key': token, ...(body && { 'content-type': 'application/json' }), ...headers },
        },
        async (response) => {
          const text = (await response.toArray().catch(reject))?.join('') ?? '';
          resolve({ status: response.statusCode ?? 0, body: text.startsWith('{') ? JSON.parse(text) : {}, text });
        },
      );
      outgoing.on('error', reject).end(body === undefined ? undefined : JSON.stringify(body));
    });
}
