/** The commands of the page for operators: a backup of a PostgreSQL server while the service runs, and its restoration. */
import { execFileSync } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { findPostgres } from 'headgate-testbed/postgres-server';
import { beforeAll, expect, test } from 'vitest';
import { openServer } from '../../src/db/database.ts';
import { cleanUpLater } from '../support/clean-up.ts';
import { clientOf, inDays } from '../support/client.ts';
import { commandsOf } from '../support/deploy-files.ts';
import { SecretFinder } from '../support/secret-finder.ts';
import { type RunningProcess, runProcess, runToEnd } from '../support/service-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { createTestDatabase } from '../support/test-database.ts';
import { PlainBrowser } from '../wizard/plain-browser.ts';

const SECRET_KEYS = `k1:${randomBytes(32).toString('base64')}`;
const folder = temporaryFolder();
/** The tools are beside the server, or where the system has them. */
const PATH = `${findPostgres()}:${process.env.PATH}`;

/** The commands of the page that use a tool, which are executed as they are written there. */
function runCommands(tool: string, variables: Readonly<Record<string, string>>): void {
  const block = commandsOf('production.md').find((text) => text.includes(`${tool} `)) ?? '';
  expect(block).toContain(tool);
  execFileSync('sh', ['-e', '-c', block], { cwd: folder, env: { PATH, ...variables }, stdio: 'pipe' });
}

async function started(environment: Readonly<Record<string, string>>): Promise<RunningProcess & { url: string }> {
  const running = runProcess(['start'], environment);
  return { ...running, url: await running.ready() };
}

const environment = { SECRET_KEYS, DATABASE_URL: '' };
let token = '';
let account = '';
let link = '';
const password = randomUUID();
const key = randomUUID();
const email = () => ({ account_id: account, to: [{ identifier: 'ann@mock.test' }], body: 'Hello' });
const send = (url: string, idempotencyKey: string) =>
  clientOf(url, token)('POST', '/api/v1/emails', email(), { 'idempotency-key': idempotencyKey });

beforeAll(async () => {
  const { url, drop } = await createTestDatabase();
  cleanUpLater(drop);
  environment.DATABASE_URL = url;
  token = (await runToEnd(['create-key', '--application', 'Shop'], environment)).out.trim();
  const service = await started(environment);
  const call = clientOf(service.url, token);
  const made = async (): Promise<string> => {
    const fields = { providers: 'mock', redirect_uri: 'https://app.example/cb', expires_on: inDays(1) };
    const proxy = { protocol: 'http', host: 'p.example', port: 1080, username: 'u', password };
    const { body } = await call('POST', '/v2/auth/link', { ...fields, config: { mock: { custom_proxy: proxy } } });
    return new URL(body.link).pathname;
  };
  const browser = new PlainBrowser(service.url);
  await browser.open(await made());
  const callback = await browser.submit('/step/login', { address: 'me@mock.test', password, drafts: 'on' });
  account = new URL(callback ?? '').searchParams.get('account_id') ?? '';
  link = await made();
  expect((await send(service.url, key)).status).toBe(201);
  // It is made while the service runs.
  runCommands('pg_dump', { DATABASE_URL: url });
  expect((await send(service.url, randomUUID())).status).toBe(201);
  service.child.kill('SIGTERM');
  expect(await service.exit).toBe(0);
});

test('the backup is readable by its owner only, and has no secret in it', () => {
  const file = join(folder, 'mail.dump');
  expect(existsSync(file) && statSync(file).mode & 0o077).toBe(0);
  const text = execFileSync('pg_restore', ['--file=-', file], { encoding: 'utf8', env: { PATH } });
  const finder = new SecretFinder();
  finder.add('master key', Buffer.from(SECRET_KEYS.slice(3), 'base64'));
  finder.add('API key', token);
  finder.add('password', password);
  finder.add('link token', link.split('/').at(-1) ?? '');
  expect(finder.find(text)).toEqual([]);
  expect(text).toContain('me@mock.test');
});

test('it is restored into an empty database, and everything of its time works with the master keys', async () => {
  const { url: DATABASE_URL, drop } = await createTestDatabase();
  cleanUpLater(drop);
  runCommands('pg_restore', { DATABASE_URL });
  const restored = { ...environment, DATABASE_URL };
  expect(await runToEnd(['doctor'], { ...restored, AUTO_MIGRATE: 'false' })).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^ok +secrets: k1 is the current master key; \d+ secrets are under it$/m),
  });
  const { url, child, exit } = await started(restored);
  const db = openServer(DATABASE_URL, () => undefined);
  cleanUpLater(() => db.destroy());
  const received = async () => (await db.selectFrom('mock_messages').select('id').execute()).length;
  // The second email was sent after the backup, so the restored database does not know it.
  expect(await received()).toBe(1);
  // The key of the first one is known: it is not sent again.
  expect((await send(url, key)).status).toBe(201);
  expect(await received()).toBe(1);
  expect((await send(url, randomUUID())).status).toBe(201);
  expect(await received()).toBe(2);
  expect((await clientOf(url, token)('GET', `/v2/accounts/${account}`)).text).toContain('p.example');
  const browser = new PlainBrowser(url);
  await browser.open(link);
  expect(browser.page.status).toBe(200);
  child.kill('SIGTERM');
  expect(await exit).toBe(0);
});

test('without the master keys of its time, the service does not start, and says which one is missing', async () => {
  const { url: DATABASE_URL, drop } = await createTestDatabase();
  cleanUpLater(drop);
  runCommands('pg_restore', { DATABASE_URL });
  const other = { DATABASE_URL, SECRET_KEYS: `k2:${randomBytes(32).toString('base64')}` };
  expect(await runToEnd(['start'], other)).toMatchObject({
    code: 2,
    error: expect.stringMatching(/under another master key with the id k1\. Put it back/),
  });
});
