import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCli } from '../../src/cli/cli.ts';
import { clientOf } from '../support/client.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const parent = temporaryFolder();
const newKey = (id: string): string => `${id}:${randomBytes(32).toString('base64')}`;
const linesOf = (text: string): readonly string[] => text.trimEnd().split('\n');

/** Runs a command in this process. */
async function command(args: readonly string[], environment: Readonly<Record<string, string>>) {
  const printed = { out: '', error: '' };
  const terminal = {
    out: (text: string) => {
      printed.out += text;
    },
    error: (text: string) => {
      printed.error += text;
    },
  };
  const result = await runCli(args, { PORT: '0', LOG_LEVEL: 'silent', ...environment }, terminal);
  return { result, printed };
}

const run = async (args: readonly string[], environment: Readonly<Record<string, string>>) => {
  const { result, printed } = await command(args, environment);
  return { code: result, ...printed };
};

const start = async (environment: Readonly<Record<string, string>>) => {
  const { result, printed } = await command(['start'], environment);
  if (typeof result === 'number') throw new Error(`The service has not started: ${printed.error}`);
  return { ...result, ...printed };
};

/** Sends an email with a key, twice with the same result if it works. */
const send = (url: string, token: string, account_id: string) =>
  clientOf(url, token)(
    'POST',
    '/api/v1/emails',
    { account_id, to: [{ identifier: 'ann@example.com' }], body: 'Hello' },
    { 'idempotency-key': 'once' },
  );

test('on an embedded database: rotate-keys makes a key, and accounts and idempotency keys work on', async () => {
  const DATA_DIR = join(parent, 'data');
  const keyFile = join(DATA_DIR, 'master.key');
  expect(await run(['doctor'], { DATA_DIR })).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^note +database: no database in/m),
  });
  const first = await start({ DATA_DIR });
  const [token = '', account = ''] = [/ck_svc_dev_\w+/, /acc_\w{26}/].map((form) => form.exec(first.out)?.[0]);
  const before = await send(first.url ?? '', token, account);
  expect(before.status).toBe(201);
  // Another process may not open the database, so there is nothing to see for the doctor.
  expect(await run(['doctor'], { DATA_DIR })).toMatchObject({
    code: 1,
    out: expect.stringMatching(/^wrong +database: DATA_DIR: another process/m),
  });
  await first.stop();
  const oldKey = readFileSync(keyFile, 'utf8');

  const rotated = await run(['rotate-keys'], { DATA_DIR });
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
  const doctor = await run(['doctor'], { DATA_DIR });
  expect(doctor).toMatchObject({ code: 0, error: '' });
  expect(linesOf(doctor.out)).toEqual([
    expect.stringMatching(/^ok +database: embedded, in .* with all \d+ migrations$/),
    expect.stringMatching(/^ok +secrets: k2 is the current master key; \d+ secrets are under it$/),
    expect.stringMatching(/^note +secrets: none is under k1\. It can be removed from master\.key, unless/),
    expect.stringMatching(/^ok +clock: this machine and the database agree$/),
    expect.stringMatching(/^ok +redis: REDIS_URL is not set/),
    expect.stringMatching(/^ok +domains: no custom domain is in use$/),
    expect.stringMatching(/^ok +providers: .*mock/),
  ]);

  // The old key is gone.
  writeFileSync(keyFile, `${keys[0]}\n`);
  const next = await start({ DATA_DIR });
  const again = await send(next.url ?? '', token, account);
  expect(again).toMatchObject({ status: 201, body: { tracking_id: before.body.tracking_id } });
  await next.stop();

  writeFileSync(keyFile, `${newKey('k9')}\n`);
  expect(await run([], { DATA_DIR })).toMatchObject({
    code: 2,
    error: expect.stringMatching(
      /^SECRET_KEYS or master\.key: the secrets of this database are under another master key/,
    ),
  });
  expect(await run(['doctor'], { DATA_DIR })).toMatchObject({
    code: 1,
    out: expect.stringMatching(/^wrong +secrets: \d+ secrets are under k2, which is not in master\.key/m),
  });
});
