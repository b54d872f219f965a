import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import openapiTS, { astToString } from 'openapi-typescript';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { linkAccount } from '../support/accounts.ts';
import { deliveredEmail, filesOf } from '../support/delivered.ts';
import { startService } from '../support/service.ts';

/** What an application writes against the generated types. Each mistake in it must be one for the compiler, too. */
const PROGRAM = `
import createClient from 'openapi-fetch';
import type { components, paths } from './api.js';

declare const process: { readonly env: Record<string, string> };
const { BASE_URL, TOKEN, ACCOUNT } = process.env;
const client = createClient<paths>({ baseUrl: BASE_URL, headers: { 'X-API-KEY': TOKEN } });

function dataOf<Data>({ data, error }: { data?: Data; error?: unknown }): Data {
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

const inAnHour = new Date(Date.now() + 3_600_000).toISOString();
const link = dataOf(
  await client.POST('/v2/auth/link', {
    body: { providers: ['mock'], expires_on: inAnHour, redirect_uri: 'https://app.example/callback' },
  }),
);
const account: components['schemas']['Account'] = dataOf(
  await client.GET('/v2/accounts/{account_id}', { params: { path: { account_id: ACCOUNT } } }),
);
const accounts = dataOf(await client.GET('/v2/accounts', { params: { query: { limit: 1, provider: 'mock' } } }));

const key = dataOf(
  await client.POST('/v2/api-keys', { body: { name: 'Mailer', expires_at: inAnHour, access: { type: 'global' } } }),
);
const keys = dataOf(await client.GET('/v2/api-keys'));
const deleted = dataOf(await client.DELETE('/v2/api-keys/{api_key_id}', { params: { path: { api_key_id: key.id } } }));

const email = { account_id: ACCOUNT, to: [{ identifier: 'ann@mock.test' }], body: 'Hi' };
const asJson = dataOf(
  await client.POST('/api/v1/emails', {
    params: { header: { 'idempotency-key': 'one' } },
    body: { ...email, attachments: [{ filename: 'a.txt', content_type: 'text/plain', content: 'aGVsbG8=' }] },
  }),
);
const form: components['schemas']['EmailRequestForm'] = {
  ...email,
  attachments: [new File(['hello'], 'a.txt', { type: 'text/plain' })],
};
const asForm = dataOf(
  await client.POST('/api/v1/emails', {
    body: form,
    bodySerializer: () => {
      const data = new FormData();
      for (const [name, value] of Object.entries(form))
        for (const each of [value].flat())
          data.append(name, typeof each === 'string' || each instanceof Blob ? each : JSON.stringify(each));
      return data;
    },
  }),
);

const { error, response } = await client.POST('/api/v1/emails', { body: { ...email, account_id: 'nothing' } });
if (error?.status === 404) {
  const type: 'errors/resource_not_found' | 'errors/invalid_resource_identifier' = error.type;
  if (type !== 'errors/invalid_resource_identifier') throw new Error(type);
}

// @ts-expect-error a field that is not in the document
const misspelt: components['schemas']['EmailRequest'] = { ...email, atachments: [] };
// @ts-expect-error a required field is missing
const without: components['schemas']['EmailRequest'] = { account_id: ACCOUNT, body: 'Hi' };
// @ts-expect-error an operation that does not exist
const nothing = () => client.GET('/v2/nothing');

console.log(
  JSON.stringify({ link, account, accounts, key, keys, deleted, asJson, asForm, status: response.status }),
);
`;

const require = createRequire(import.meta.url);
/** The compiler that the generator works with. */
const { factory } = createRequire(require.resolve('openapi-typescript'))('typescript') as typeof import('typescript');
const BLOB = factory.createTypeReferenceNode('Blob');
const modules = join(dirname(require.resolve('openapi-fetch/package.json')), '..');
const compiler = require.resolve('typescript-7/package.json');
const folder = mkdtempSync(join(tmpdir(), 'communication-api-client-'));
afterAll(() => rmSync(folder, { recursive: true }));

const service = await startService();
const { id: application, token } = await service.application();
const { id: accountId } = await linkAccount(service.rooms, application, { name: 'me@mock.test' });
const node = (args: readonly string[], env: Record<string, string> = {}) =>
  promisify(execFile)(process.execPath, [...args], { cwd: folder, env: { ...process.env, ...env } }).catch((error) => {
    throw new Error(`${error.message}\n${error.stdout}`);
  });

beforeAll(async () => {
  const document = await (await fetch(`${service.url}/openapi.json`)).text();
  const types = await openapiTS(document, {
    // Files are strings by default.
    transform: ({ format }) => (format === 'binary' ? BLOB : undefined),
  });
  writeFileSync(join(folder, 'api.d.ts'), astToString(types));
  writeFileSync(join(folder, 'program.ts'), PROGRAM);
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  symlinkSync(modules, join(folder, 'node_modules'));
});

test('a client that openapi-typescript generates is type-safe, and makes links, keys and sends', async () => {
  const flags = '--strict --noUnusedLocals false --target es2022 --lib es2022,dom,dom.iterable --types';
  const options = `${flags} --module nodenext --moduleResolution nodenext --skipLibCheck --noEmitOnError program.ts`;
  await node([join(dirname(compiler), 'bin', 'tsc'), ...options.split(' ')]);
  const { stdout } = await node(['program.js'], { BASE_URL: service.url, TOKEN: token, ACCOUNT: accountId });
  const { link, account, accounts, key, keys, deleted, asJson, asForm, status } = JSON.parse(stdout);
  expect(link).toMatchObject({ object: 'AuthLink', link: expect.stringMatching(/^http/) });
  expect(account).toMatchObject({ id: accountId, provider: 'mock' });
  expect(accounts).toMatchObject({ data: [account], has_more: false });
  expect(key).toMatchObject({ object: 'ApiKey', api_key: expect.stringMatching(/^ck_acc_dev_/) });
  expect(keys.data).toMatchObject([{ id: key.id, name: 'Mailer', role: 'account' }]);
  expect(deleted).toEqual({ object: 'ApiKeyDeleted', id: key.id });
  for (const { tracking_id } of [asJson, asForm])
    expect(filesOf(await deliveredEmail(service.db, tracking_id))).toEqual([
      { filename: 'a.txt', contentType: 'text/plain', text: 'hello' },
    ]);
  expect(status).toBe(404);
});
