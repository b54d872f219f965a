import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { addMasterKey, masterKeysIn } from '../../src/db/master-key.ts';
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
  const [key] = masterKeysIn(folder, true);
  if (key === undefined) throw new Error('There is no key.');
  expect(key.key).toHaveLength(32);
  expect(statSync(join(folder, 'master.key')).mode & 0o777).toBe(0o600);
  expect(masterKeysIn(folder, false)).toEqual([key]);
  expect(readFileSync(join(folder, 'master.key'), 'utf8')).toBe(
    `${key.id}:${Buffer.from(key.key).toString('base64')}\n`,
  );
});

test('two directories have different keys', () => {
  expect(masterKeysIn(newFolder(), true)).not.toEqual(masterKeysIn(newFolder(), true));
});

test('a missing key of an existing database is an error, not a new key', () => {
  expect(() => masterKeysIn(newFolder(), false)).toThrow(/master\.key is missing/);
});

test('a new key comes in front of the others, which stay', () => {
  const folder = newFolder();
  const [first] = masterKeysIn(folder, true);
  const second = addMasterKey(folder);
  expect(second.map(({ id }) => id)).toEqual(['k2', 'k1']);
  expect(second[1]).toEqual(first);
  expect(masterKeysIn(folder, false)).toEqual(second);
  expect(addMasterKey(folder).map(({ id }) => id)).toEqual(['k3', 'k2', 'k1']);
  expect(statSync(join(folder, 'master.key')).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder)).toEqual(['master.key']);
});

test.each([
  '',
  'k1',
  'k1:short',
  'k1:hunter2hunter2hunter2hunter2hunter2hunter2!!=',
  `k2:${'A'.repeat(43)}=\nk1:short`,
])('a file with %j is refused, and its content is not shown', (content) => {
  const folder = newFolder();
  writeFileSync(join(folder, 'master.key'), content);
  expect(() => masterKeysIn(folder, false)).toThrow(/is not a master key: expected lines/);
  expect(() => masterKeysIn(folder, false)).not.toThrow(/hunter2/);
});

test('a file that cannot be read is an error that says why', () => {
  const folder = newFolder();
  mkdirSync(join(folder, 'master.key'));
  expect(() => masterKeysIn(folder, false)).toThrow(/cannot be read \(EISDIR\)/);
});
