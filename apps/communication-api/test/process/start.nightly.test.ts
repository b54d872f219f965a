/** What a start and the commands do besides the tests in start.test.ts. */
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { MIGRATION_NAMES } from '../../src/db/migrate.ts';
import { isKnown } from '../support/is-known.ts';
import { runProcess, runToEnd } from '../support/service-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { createTestDatabase } from '../support/test-database.ts';

const parent = temporaryFolder();
const SECRET_KEYS = `k1:${Buffer.alloc(32, 1).toString('base64')}`;

describe('on an embedded database', () => {
  const DATA_DIR = join(parent, 'data');
  let token = '';

  beforeAll(async () => {
    const { ready, printed, child, exit } = runProcess([], { DATA_DIR });
    await ready();
    token = /ck_svc_dev_\w+/.exec(printed.out)?.[0] ?? '';
    child.kill('SIGTERM');
    await exit;
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

  test('reset-second-factor names a login that does not exist', async () => {
    const ended = await runToEnd(['reset-second-factor', 'Nobody@example.com'], { DATA_DIR });
    expect(ended).toEqual({ code: 1, out: '', error: 'reset-second-factor: there is no login nobody@example.com\n' });
  });

  test('create-key with the name of no application makes that application', async () => {
    const args = ['create-key', '--application', 'Shop', '--environment', 'production'];
    const first = await runToEnd(args, { DATA_DIR });
    expect(first).toMatchObject({ code: 0, out: expect.stringMatching(/^ck_svc_live_/) });
    expect(first.error).toMatch(/^New application "Shop"/);
    const other = await runToEnd(['create-key', '--application', 'Shop', '--environment', 'development'], { DATA_DIR });
    expect(other).toMatchObject({ code: 2, out: '', error: expect.stringMatching(/"Shop" is for production/) });
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
    // Only that it makes the database, if this is the first attempt.
    out: expect.not.stringContaining('http'),
    error: expect.stringMatching(new RegExp(`^PORT: another process listens on 127.0.0.1:${port}`)),
  });
  other.close();
  // Nothing was promised yet: the next start is still the first one, and shows the key.
  const { ready, printed } = runProcess([], { DATA_DIR });
  await ready();
  expect(printed.out).toContain('ck_svc_dev_');
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
