import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import axios from 'axios';
import { foldersOnPath, isOnPath } from 'headgate-testbed/find-program';
import { afterAll, expect, test } from 'vitest';
import { linkAccount } from '../support/accounts.ts';
import { deliveredEmail, filesOf } from '../support/delivered.ts';
import { startService } from '../support/service.ts';

const service = await startService();
const { id: application, token } = await service.application();
const { id: accountId } = await linkAccount(service.rooms, application, { name: 'me@mock.test' });
const url = `${service.url}/api/v1/emails`;
const headers = { 'x-api-key': token };

const fields = {
  account_id: accountId,
  to: [{ identifier: 'ann@mock.test', display_name: 'Ann' }, { identifier: 'bob@mock.test' }],
  subject: 'Hello',
  body: 'Hi',
  custom_headers: [{ name: 'X-Ticket', value: '7' }],
  tracking_options: { opens: false },
};
const file = new File(['hello'], 'a.txt', { type: 'text/plain' });

const folder = mkdtempSync(join(tmpdir(), 'communication-api-curl-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Expects that the email of `fields`, with the file if there is one, was delivered. */
async function expectDelivered(answer: unknown, hasFile: boolean): Promise<void> {
  expect(answer).toMatchObject({ object: 'EmailSent' });
  const email = await deliveredEmail(service.db, (answer as { tracking_id: string }).tracking_id);
  expect(email).toMatchObject({ subject: 'Hello', text: expect.stringContaining('Hi') });
  expect([email.to].flat()[0]?.text).toBe('"Ann" <ann@mock.test>, bob@mock.test');
  expect(email.headers.get('x-ticket')).toBe('7');
  expect(filesOf(email)).toEqual(hasFile ? [{ filename: 'a.txt', contentType: 'text/plain', text: 'hello' }] : []);
}

test('axios sends nested fields of a form with brackets', async () => {
  const { data } = await axios.postForm(url, axios.toFormData({ ...fields, attachments: [file] }, new FormData()), {
    headers,
  });
  await expectDelivered(data, true);
});

test('axios sends a URL-encoded form with brackets', async () => {
  const type = { 'content-type': 'application/x-www-form-urlencoded' };
  const { data } = await axios.post(url, fields, { headers: { ...headers, ...type } });
  await expectDelivered(data, false);
});

test('hey-api sends one part per item of an array, each with JSON', async () => {
  // As its formDataBodySerializer writes it. The package itself needs a newer Node.js.
  const form = new FormData();
  const append = (name: string, value: unknown): void => {
    if (typeof value === 'string' || value instanceof Blob) form.append(name, value);
    else form.append(name, JSON.stringify(value));
  };
  for (const [name, value] of Object.entries({ ...fields, attachments: [file] }))
    for (const each of [value].flat()) append(name, each);
  const answer = await fetch(url, { method: 'POST', headers, body: form });
  await expectDelivered(await answer.json(), true);
});

test.runIf(foldersOnPath().some((path) => isOnPath(join(path, 'curl'))))('curl sends arrays as JSON', async () => {
  writeFileSync(join(folder, 'a.txt'), 'hello');
  const parts = Object.entries(fields).map(([name, value]) =>
    typeof value === 'string' ? `${name}=${value}` : `${name}=${JSON.stringify(value)}`,
  );
  const { stdout } = await promisify(execFile)('curl', [
    ...['--silent', '--show-error', '--header', `X-API-KEY: ${token}`],
    // --form would take a semicolon for the beginning of a media type.
    ...parts.flatMap((part) => ['--form-string', part]),
    ...['--form', `attachments=@${join(folder, 'a.txt')};type=text/plain`, url],
  ]);
  await expectDelivered(JSON.parse(stdout), true);
});
