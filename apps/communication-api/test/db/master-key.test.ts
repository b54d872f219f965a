import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { masterKeyIn } from '../../src/db/master-key.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const parent = temporaryFolder();
let count = 0;
const newFolder = (): string => {
  const folder = join(parent, String(count++));
  mkdirSync(folder);
  return folder;
};

test('a new data directory gets a key that only its owner may read, and the next start reads it', () => {
  const folder = newFolder();
  const key = masterKeyIn(folder, true);
  expect(key.key).toHaveLength(32);
  expect(statSync(join(folder, 'master.key')).mode & 0o777).toBe(0o600);
  expect(masterKeyIn(folder, false)).toEqual(key);
  expect(readFileSync(join(folder, 'master.key'), 'utf8')).toBe(
    `${key.id}:${Buffer.from(key.key).toString('base64')}\n`,
  );
});

test('two directories have different keys', () => {
  expect(masterKeyIn(newFolder(), true).key).not.toEqual(masterKeyIn(newFolder(), true).key);
});

test('a missing key of an existing database is an error, not a new key', () => {
  expect(() => masterKeyIn(newFolder(), false)).toThrow(/master\.key is missing/);
});

test.each(['', 'k1', 'k1:short', 'k1:hunter2hunter2hunter2hunter2hunter2hunter2!!='])(
  'a file with %j is refused, and its content is not shown',
  (content) => {
    const folder = newFolder();
    writeFileSync(join(folder, 'master.key'), content);
    expect(() => masterKeyIn(folder, false)).toThrow(/is not a master key: expected one line/);
    expect(() => masterKeyIn(folder, false)).not.toThrow(/hunter2/);
  },
);

test('a file that cannot be read is an error that says why', () => {
  const folder = newFolder();
  mkdirSync(join(folder, 'master.key'));
  expect(() => masterKeyIn(folder, false)).toThrow(/cannot be read \(EISDIR\)/);
});
