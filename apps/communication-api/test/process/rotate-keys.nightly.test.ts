import { randomBytes } from 'node:crypto';
import { startRedis } from 'headgate-testbed/redis-server';
import { expect, test } from 'vitest';
import { cleanUpLater } from '../support/clean-up.ts';
import { clientOf, inDays } from '../support/client.ts';
import { freePort } from '../support/free-port.ts';
import { runProcess, runToEnd } from '../support/service-process.ts';
import { createTestDatabase } from '../support/test-database.ts';

const newKey = (id: string): string => `${id}:${randomBytes(32).toString('base64')}`;
const linesOf = (text: string): readonly string[] => text.trimEnd().split('\n');

test('on a server: the keys of a running service are rotated, and doctor says when the old one can go', async () => {
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
      expect.stringMatching(/^note +secrets: 2 secrets are still under k1\. Run rotate-keys$/),
      expect.stringMatching(/^ok +redis: the server of REDIS_URL answers$/),
    ]),
  );
  const rotated = await runToEnd(['rotate-keys'], both);
  expect(rotated).toMatchObject({ code: 0, out: expect.stringContaining('k1 can be removed from SECRET_KEYS') });
  expect(await doctor(both)).toContainEqual(
    expect.stringMatching(
      /^note +secrets: none is under k1\. It can be removed from SECRET_KEYS, unless you need a backup/,
    ),
  );
  expect((await fetch(new URL(new URL(created.body.link).pathname, url), { redirect: 'manual' })).status).toBeLessThan(
    400,
  );

  const nobody = `redis://127.0.0.1:${await freePort()}`;
  expect(await doctor({ ...both, SECRET_KEYS: `${k2},${newKey('k1')}`, REDIS_URL: nobody })).toContainEqual(
    expect.stringMatching(/^wrong +redis: the server of REDIS_URL does not answer/),
  );
});
