import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parseCommandLine } from '../../src/cli/command-line.ts';
import { readConfig } from '../../src/config.ts';
import { errorTypesOf } from '../../src/domain/error-types.ts';
import { PERMISSIONS } from '../../src/providers/google/scopes.ts';

const page = readFileSync(new URL('../../docs/providers.md', import.meta.url), 'utf8');
const google = page.slice(page.indexOf('## Google'), page.indexOf('## Check a real account'));
const blocks = [...page.matchAll(/^```sh\n(.*?)```$/gms)].map(([, code = '']) => code.trim().split('\n'));

test('the settings of the page are accepted as they stand there', () => {
  const settings = (blocks.find(([line]) => line?.startsWith('export GOOGLE_')) ?? []).filter(
    (line) => line !== 'npm start',
  );
  const environment = Object.fromEntries(
    settings.map((line) => line.replace('export ', '').split('=', 2) as [string, string]),
  );
  expect(Object.keys(environment)).toHaveLength(3);
  expect(readConfig(environment)).toMatchObject(environment);
});

test('the command of the page is accepted as it stands there', () => {
  const [[command = ''] = []] = blocks.filter(([line]) => line?.startsWith('npm start'));
  const args = command.replace('npm start -- ', '').split(' ');
  expect(parseCommandLine(args, Date.now())).toMatchObject({ command: 'check-account', to: 'you@example.com' });
});

test('the permissions of the page are those that users are asked for', () => {
  for (const [name, scopes] of Object.entries(PERMISSIONS)) {
    const row = google.split('\n').find((line) => line.startsWith(`| \`${name}\``)) ?? '';
    for (const scope of scopes) expect(row).toContain(`\`${scope.split('/').at(-1)}\``);
  }
});

test('each error of the page exists', () => {
  const named = [...google.matchAll(/\| .*?(\d{3}) `((?:errors|provider)\/\w+)`/g)].map(([, status, type]) => [
    status,
    type,
  ]);
  expect(named.length).toBeGreaterThan(8);
  for (const [status, type] of named) expect(errorTypesOf(Number(status) as 401)).toContain(type);
});
