/** Settings whose secrets are in files. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCli } from '../src/cli/cli.ts';
import { variablesTable } from '../src/cli/variables-table.ts';
import { describeVariables, readConfig } from '../src/config.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const folder = temporaryFolder();
let count = 0;

/** Makes a file. @returns its path */
function fileWith(content: string | Uint8Array): string {
  const path = join(folder, `file-${++count}`);
  writeFileSync(path, content);
  return path;
}

/** What a start with wrong settings prints, and its exit code. */
async function refused(environment: Record<string, string>) {
  const errors: string[] = [];
  const terminal = { out: () => undefined, error: (text: string) => void errors.push(text.trimEnd()) };
  return { code: await runCli(['start'], environment, terminal), errors };
}

test('every setting with a secret can be in a file; one line break at its end does not count', () => {
  const key = randomBytes(32);
  const texts: Record<string, string> = {
    DATABASE_URL: 'postgres://user:password@db.example/mail',
    REDIS_URL: 'redis://:password@redis.example\n',
    SECRET_KEYS: `k1:${key.toString('base64')}\r\n`,
    GOOGLE_CLIENT_SECRET: ' with spaces \n',
    MICROSOFT_CLIENT_SECRET: 'with a line break\n\n',
  };
  expect(Object.keys(texts).sort()).toEqual(
    describeVariables()
      .flatMap(({ name, isSecret }) => (isSecret ? name : []))
      .sort(),
  );
  const files = Object.entries(texts).map(([name, text]) => [`${name}_FILE`, fileWith(text)]);
  expect(readConfig({ GOOGLE_CLIENT_ID: 'a', MICROSOFT_CLIENT_ID: 'b', ...Object.fromEntries(files) })).toMatchObject({
    DATABASE_URL: 'postgres://user:password@db.example/mail',
    REDIS_URL: 'redis://:password@redis.example',
    SECRET_KEYS: [{ id: 'k1', key }],
    GOOGLE_CLIENT_SECRET: ' with spaces ',
    MICROSOFT_CLIENT_SECRET: 'with a line break\n',
  });
});

test('a link to a file is followed, and an empty variable counts as absent', () => {
  const link = join(folder, 'link');
  symlinkSync(fileWith('redis://one'), link);
  expect(readConfig({ REDIS_URL_FILE: link, REDIS_URL: '', DATABASE_URL_FILE: '' }).REDIS_URL).toBe('redis://one');
});

test('a file that cannot be used is named with its setting, and ends the start with 2', async () => {
  const fifo = join(folder, 'fifo');
  execFileSync('mkfifo', [fifo]);
  const REDIS_URL_FILE = fileWith('redis://one');
  for (const [environment, message] of [
    [{ REDIS_URL_FILE, REDIS_URL: 'redis://two' }, 'REDIS_URL is set, too. Give one of them'],
    [{ REDIS_URL_FILE: join(folder, 'none') }, 'the file cannot be read (ENOENT)'],
    [{ REDIS_URL_FILE: fileWith('\n') }, 'the file is empty'],
    [{ REDIS_URL_FILE: fifo }, 'is not a file'],
    [{ REDIS_URL_FILE: '/dev/zero' }, 'is not a file'],
    [{ REDIS_URL_FILE: folder }, 'is not a file'],
    [{ REDIS_URL_FILE: fileWith(new Uint8Array(65_537)) }, 'the file is larger than 65536 bytes'],
  ] as const)
    expect(await refused(environment)).toEqual({ code: 2, errors: [`REDIS_URL_FILE: ${message}`] });
});

test('a value in a file is checked as another one is, and is never shown', async () => {
  const DATABASE_URL_FILE = fileWith('mysql://user:hunter2@host/db');
  expect(await refused({ DATABASE_URL_FILE, SECRET_KEYS_FILE: join(folder, 'none') })).toEqual({
    code: 2,
    errors: [
      'SECRET_KEYS_FILE: the file cannot be read (ENOENT)',
      'DATABASE_URL: must begin with postgres:// or postgresql://',
    ],
  });
  const [row] = /^DATABASE_URL .*/m.exec(variablesTable({ DATABASE_URL_FILE })) ?? [];
  expect(row).toMatch(/^DATABASE_URL +\S+ \(file\) +PostgreSQL server/);
  expect(row).toContain(DATABASE_URL_FILE);
});

test('another setting is not read from a file', async () => {
  expect(await refused({ PORT_FILE: fileWith('80') })).toEqual({
    code: 2,
    errors: ['PORT_FILE: only secrets are read from files. Set PORT instead'],
  });
});
