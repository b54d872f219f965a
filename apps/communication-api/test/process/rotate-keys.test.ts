import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startRedis } from '../../../../test/support/redis-server.ts';
import { cleanUpLater } from '../support/clean-up.ts';
import { clientOf, inDays } from '../support/client.ts';
import { freePort } from '../support/free-port.ts';
import { runProcess, runToEnd } from '../support/service-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { createTestDatabase } from '../support/test-database.ts';

const parent = temporaryFolder();
const newKey = (id: string): string => `${id}:${randomBytes(32).toString('base64')}`;
const linesOf = (text: string): readonly string[] => text.trimEnd().split('\n');

/** Sends an email with a key, twice with the same result if it works. */
const send = (url: string, token: string, account_id: string) =>
  clientOf(url, token)(
    'POST',
    '/api/v1/emails',
    { account_id, to: [{ identifier: 'ann@example.com' }], body: 'Hello' },
    { 'idempotency-key': 'once' },
  );

test.concurrent('on an embedded database: rotate-keys makes a key, and accounts and idempotency keys work on', async () => {
  const DATA_DIR = join(parent, 'data');
  const keyFile = join(DATA_DIR, 'master.key');
  expect(await runToEnd(['doctor'], { DATA_DIR })).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^note +database: there is none/m),
  });
  const first = runProcess([], { DATA_DIR });
  const url = await first.ready();
  const [token = '', account = ''] = [/ck_svc_dev_\w+/, /acc_\w{26}/].map((form) => form.exec(first.printed.out)?.[0]);
  const before = await send(url, token, account);
  expect(before.status).toBe(201);
  // Another process may not open the database, so there is nothing to see for the doctor.
  expect(await runToEnd(['doctor'], { DATA_DIR })).toMatchObject({
    code: 1,
    out: expect.stringMatching(/^wrong +database: DATA_DIR: another process/m),
  });
  first.child.kill('SIGTERM');
  await first.exit;
  const oldKey = readFileSync(keyFile, 'utf8');

  const rotated = await runToEnd(['rotate-keys'], { DATA_DIR });
  expect(rotated).toMatchObject({ code: 0, error: '' });
  expect(linesOf(rotated.out)).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^k2 is the new master key\. Back up .*master\.key again\.$/),
      'accounts.secret: 1 under k2',
      'Every secret is under k2.',
    ]),
  );
  const keys = linesOf(readFileSync(keyFile, 'utf8'));
  expect(keys).toEqual([expect.stringMatching(/^k2:/), oldKey.trim()]);
  const doctor = await runToEnd(['doctor'], { DATA_DIR });
  expect(doctor).toMatchObject({ code: 0, error: '' });
  expect(linesOf(doctor.out)).toEqual([
    expect.stringMatching(/^ok +database: embedded, in .* with all \d+ migrations$/),
    expect.stringMatching(/^ok +secrets: k2 is the current master key; \d+ are under it$/),
    expect.stringMatching(/^note +secrets: none is under k1\. It can be removed from master\.key, unless/),
    expect.stringMatching(/^ok +redis: REDIS_URL is not set/),
    expect.stringMatching(/^ok +providers: .*mock/),
  ]);

  // The old key is gone.
  writeFileSync(keyFile, `${keys[0]}\n`);
  const next = runProcess([], { DATA_DIR });
  const again = await send(await next.ready(), token, account);
  expect(again).toMatchObject({ status: 201, body: { tracking_id: before.body.tracking_id } });
  next.child.kill('SIGTERM');
  expect(await next.exit).toBe(0);

  writeFileSync(keyFile, `${newKey('k9')}\n`);
  expect(await runToEnd([], { DATA_DIR })).toMatchObject({
    code: 2,
    error: expect.stringMatching(
      /^SECRET_KEYS or master\.key: the secrets of this database are under another master key/,
    ),
  });
  expect(await runToEnd(['doctor'], { DATA_DIR })).toMatchObject({
    code: 1,
    out: expect.stringMatching(/^wrong +secrets: \d+ are under k2, which is not in master\.key/m),
  });
});

test.concurrent('on a server: the keys of a running service are rotated, and doctor says when the old one can go', async () => {
  const { url: DATABASE_URL, drop } = await createTestDatabase();
  cleanUpLater(drop);
  const redis = await startRedis();
  cleanUpLater(() => redis.stop());
  const [k1, k2] = [newKey('k1'), newKey('k2')];
  const REDIS_URL = `redis://127.0.0.1:${redis.port}`;
  const only = { DATABASE_URL, REDIS_URL, SECRET_KEYS: k1 };
  const both = { ...only, SECRET_KEYS: `${k2},${k1}` };
  expect(await runToEnd(['doctor'], { ...only, AUTO_MIGRATE: 'false' })).toMatchObject({
    code: 1,
    out: expect.stringMatching(/^wrong +database: .*lacks \d+ of \d+ migrations/m),
  });
  const { out } = await runToEnd(['create-key'], only);
  const token = out.trim();
  const old = runProcess([], only);
  const link = { providers: 'mock', redirect_uri: 'https://app.example/cb', expires_on: inDays(1) };
  const created = await clientOf(await old.ready(), token)('POST', '/v2/auth/link', link);
  expect(created.status).toBe(200);
  old.child.kill('SIGTERM');
  await old.exit;

  const running = runProcess([], both);
  const url = await running.ready();
  const doctor = async (environment: Record<string, string>) => linesOf((await runToEnd(['doctor'], environment)).out);
  expect(await doctor(both)).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^note +secrets: 2 are still under k1\. Run rotate-keys$/),
      expect.stringMatching(/^ok +redis: the server of REDIS_URL answers$/),
    ]),
  );
  const rotated = await runToEnd(['rotate-keys'], both);
  expect(rotated).toMatchObject({ code: 0, out: expect.stringContaining('k1 can be removed from SECRET_KEYS') });
  expect(await doctor(both)).toContainEqual(
    expect.stringMatching(/^note +secrets: none is under k1\. It can be removed from SECRET_KEYS$/),
  );
  expect((await fetch(new URL(new URL(created.body.link).pathname, url), { redirect: 'manual' })).status).toBeLessThan(
    400,
  );

  const nobody = `redis://127.0.0.1:${await freePort()}`;
  expect(await doctor({ ...both, SECRET_KEYS: `${k2},${newKey('k1')}`, REDIS_URL: nobody })).toContainEqual(
    expect.stringMatching(/^wrong +redis: the server of REDIS_URL does not answer/),
  );
});
