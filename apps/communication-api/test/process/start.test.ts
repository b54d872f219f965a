import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { Agent, createServer, get, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { MIGRATION_NAMES } from '../../src/db/migrate.ts';
import { runProcess, runToEnd } from '../support/service-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { createTestDatabase } from '../support/test-database.ts';

const parent = temporaryFolder();
const SECRET_KEYS = `k1:${Buffer.alloc(32, 1).toString('base64')}`;

/** Whether the service knows a key: a request without a body is a 422 then, and else a 401. */
const isKnown = async (url: string, token: string): Promise<boolean> => {
  const answer = await fetch(`${url}/api/v1/emails`, { method: 'POST', headers: { 'x-api-key': token } });
  expect([401, 422]).toContain(answer.status);
  return answer.status === 422;
};

describe('on an embedded database', () => {
  const DATA_DIR = join(parent, 'data');
  let token = '';

  test('the first start makes a demonstration and prints its banner', async () => {
    // In the way of `npm start`.
    const { ready, printed, child, exit } = runProcess([], { DATA_DIR }, ['--enable-source-maps']);
    const url = await ready();
    token = /ck_svc_dev_\w+/.exec(printed.out)?.[0] ?? '';
    expect(printed.out).toContain(`data in ${DATA_DIR}`);
    expect(printed.out).toMatch(/A mock mailbox is linked: acc_\w{26}/);
    expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ status: 'ok' });
    expect((await fetch(`${url}/docs`)).status).toBe(200);
    const [send = ''] = printed.out.replaceAll('\\\n', ' ').match(/^ *curl .*\/api\/v1\/emails$/m) ?? [];
    const sent = await promisify(execFile)('sh', ['-c', send.replace('curl', 'curl --silent --show-error')]);
    expect(JSON.parse(sent.stdout)).toMatchObject({ object: expect.stringMatching(/^Email/) });
    child.kill('SIGTERM');
    expect(await exit).toBe(0);
    expect(readdirSync(DATA_DIR).sort()).toEqual(['database', 'master.key']);
  });

  test('create-owner-link prints a link on the standard output, and a start prints one as long as there is no owner', async () => {
    const BASE_URL = 'https://mail.example';
    const { code, out, error } = await runToEnd(['create-owner-link'], { DATA_DIR, BASE_URL });
    expect({ code, out }).toEqual({
      code: 0,
      out: expect.stringMatching(/^https:\/\/mail\.example\/dashboard\/join\/[\w-]{43}\n$/),
    });
    expect(error).toContain('within an hour');
    const { ready, printed, child, exit } = runProcess([], { DATA_DIR });
    const url = await ready();
    const link = /http\S*\/dashboard\/join\/\S+/.exec(printed.out)?.[0] ?? '';
    expect(link.startsWith(url)).toBe(true);
    for (const each of [link, `${url}${new URL(out.trim()).pathname}`]) expect((await fetch(each)).status).toBe(200);
    child.kill('SIGTERM');
    expect(await exit).toBe(0);
  });

  test('create-key prints a token on the standard output, and nothing else there', async () => {
    const { code, out, error } = await runToEnd(['create-key', '--name', 'ci', '--expires', '2099-01-01'], {
      DATA_DIR,
    });
    expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/^ck_svc_dev_\w{49}\n$/) });
    expect(error).toContain('valid until 2099-01-01');
    token = out.trim();
  });

  test('create-key with the name of no application makes that application', async () => {
    const args = ['create-key', '--application', 'Shop', '--environment', 'production'];
    const first = await runToEnd(args, { DATA_DIR });
    expect(first).toMatchObject({ code: 0, out: expect.stringMatching(/^ck_svc_live_/) });
    expect(first.error).toMatch(/^New application "Shop"/);
    const other = await runToEnd(['create-key', '--application', 'Shop', '--environment', 'development'], { DATA_DIR });
    expect(other).toMatchObject({ code: 2, out: '', error: expect.stringMatching(/"Shop" is for production/) });
  });

  test('the second start is fast, prints no token, and knows the keys; a second process is refused', async () => {
    const startedAt = performance.now();
    const first = runProcess(['start'], { DATA_DIR });
    const url = await first.ready();
    expect(performance.now() - startedAt).toBeLessThan(30_000);
    expect(first.printed.out).not.toContain('ck_');
    expect(first.printed.out).toContain('create-key');
    expect(await isKnown(url, token)).toBe(true);
    expect(await isKnown(url, `${token.slice(0, -1)}!`)).toBe(false);

    const others = [['start'], ['create-key'], ['backup'], ['restore', 'nothing.tar.gz']];
    for (const ended of await Promise.all(others.map((command) => runToEnd(command, { DATA_DIR }))))
      expect(ended).toEqual({
        code: 2,
        out: '',
        error: expect.stringContaining(`another process (pid ${first.child.pid}) uses ${DATA_DIR}`),
      });

    first.child.kill('SIGKILL');
    await first.exit;
    const next = runProcess(['start'], { DATA_DIR });
    expect(await isKnown(await next.ready(), token)).toBe(true);
    next.child.kill('SIGTERM');
    expect(await next.exit).toBe(0);
  });

  test('backup and restore bring back a key', async () => {
    const backup = await runToEnd(['backup'], { DATA_DIR });
    expect(backup).toMatchObject({ code: 0, out: expect.stringMatching(/backups\/backup-.*\.tar\.gz\n$/) });
    const { out: later } = await runToEnd(['create-key'], { DATA_DIR });
    const restored = await runToEnd(['restore', backup.out.trim()], { DATA_DIR });
    expect(restored).toMatchObject({ code: 0, out: expect.stringContaining('database.before-') });
    const { ready, child, exit } = runProcess([], { DATA_DIR });
    const url = await ready();
    expect([await isKnown(url, token), await isKnown(url, later.trim())]).toEqual([true, false]);
    child.kill('SIGINT');
    expect(await exit).toBe(0);
  });
});

test('a running request ends before the process does', async () => {
  const { ready, child, exit } = runProcess([], { DATA_DIR: join(parent, 'drained') });
  const { port } = new URL(await ready());
  // More than the buffers of a connection take: the answer ends when it is read.
  const answer = await new Promise<IncomingMessage>((resolve) =>
    get(
      { port, host: '127.0.0.1', path: '/docs/static/swagger-ui-bundle.js', agent: new Agent({ keepAlive: true }) },
      resolve,
    ),
  );
  child.kill('SIGTERM');
  await expect.poll(() => fetch(`http://127.0.0.1:${port}/healthz`).catch(() => 'refused')).toBe('refused');
  expect(child.exitCode).toBe(null);
  let bytes = 0;
  for await (const part of answer) bytes += (part as Buffer).length;
  expect(bytes).toBe(Number(answer.headers['content-length']));
  expect(await exit).toBe(0);
});

test('a request that does not end is cut off after DRAIN_MS', async () => {
  const { ready, child, exit } = runProcess([], { DATA_DIR: join(parent, 'cut'), DRAIN_MS: '300' });
  const { port } = new URL(await ready());
  const socket = connect(Number(port), '127.0.0.1').on('error', () => undefined);
  socket.write('GET /docs/static/swagger-ui-bundle.js HTTP/1.1\r\nhost: a\r\n\r\n');
  await new Promise((resolve) => socket.once('readable', resolve));
  child.kill('SIGTERM');
  expect(await exit).toBe(0);
  socket.destroy();
});

test('a port in use is an error that names it, with exit code 1', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => other.on('listening', resolve));
  const { port } = other.address() as AddressInfo;
  const DATA_DIR = join(parent, 'port');
  expect(await runToEnd([], { DATA_DIR, PORT: String(port) })).toEqual({
    code: 1,
    out: '',
    error: expect.stringMatching(new RegExp(`^PORT: another process listens on 127.0.0.1:${port}`)),
  });
  other.close();
  // Nothing was promised yet: the next start is still the first one, and shows the key.
  const { ready, printed } = runProcess([], { DATA_DIR });
  await ready();
  expect(printed.out).toContain('ck_svc_dev_');
});

test('commands and settings that are wrong end with 2 and say what is right', async () => {
  const [command, settings] = await Promise.all([
    runToEnd(['strat']),
    runToEnd(['start'], { PORT: 'x', LOG_LEVEL: 'loud' }),
  ]);
  expect(command).toMatchObject({ code: 2, out: '', error: expect.stringContaining('unknown command "strat"') });
  expect(settings.code).toBe(2);
  expect(settings.error.trimEnd().split('\n')).toEqual([
    expect.stringMatching(/^PORT: /),
    expect.stringMatching(/^LOG_LEVEL: /),
  ]);
});

test('help and config print what they should', async () => {
  const [help, config] = await Promise.all([runToEnd(['help']), runToEnd(['config'], { SECRET_KEYS })]);
  expect(help).toMatchObject({ code: 0, out: expect.stringContaining('create-key') });
  expect(config).toMatchObject({ code: 0, out: expect.stringMatching(/^SECRET_KEYS +\*{4} \(set\)/m) });
});

test('on a server: migrate, create-key beside a running service, and one database for two processes', async () => {
  const { url: DATABASE_URL, drop } = await createTestDatabase();
  const environment = { DATABASE_URL, SECRET_KEYS, AUTO_MIGRATE: 'false' };
  expect(await runToEnd([], environment)).toMatchObject({
    code: 2,
    error: expect.stringContaining('Run the command "migrate"'),
  });
  expect(await runToEnd(['migrate'], environment)).toMatchObject({ code: 0, out: `${MIGRATION_NAMES.join('\n')}\n` });
  expect(await runToEnd(['migrate'], environment)).toMatchObject({ code: 0, out: 'The schema is up to date.\n' });
  const services = [runProcess([], environment), runProcess([], environment)];
  const urls = await Promise.all(services.map(({ ready }) => ready()));
  expect(services[0]?.printed.out).toContain('create-key --application NAME');
  const { out } = await runToEnd(['create-key', '--application', 'Shop'], environment);
  for (const url of urls) expect(await isKnown(url, out.trim())).toBe(true);
  expect(await runToEnd(['backup'], environment)).toMatchObject({ code: 2, error: expect.stringContaining('pg_dump') });
  for (const { child, exit } of services) {
    child.kill('SIGTERM');
    expect(await exit).toBe(0);
  }
  await drop();
});
