import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { AdjustmentEntry } from '../../src/core/adjustment.ts';
import { parseLimit } from '../../src/core/limit.ts';
import { createFileAdjustments } from '../../src/shared-limits/stores/file.ts';
import { adjustmentStoreSuite } from '../support/adjustment-suite/suite.ts';

const folder = mkdtempSync(join(tmpdir(), 'headgate-adjustments-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const newPath = (): string => join(folder, `${files++}.json`);

adjustmentStoreSuite({ describe, it }, fc, {
  name: 'a file',
  histories: 15,
  create: (clock) => createFileAdjustments(newPath(), { clock }),
});

const head = { version: 1, nonce: 'n' };
const limits = [{ target: { account: 'a' }, from: undefined, to: parseLimit([{ name: 'few', window: '5/1m' }]) }];
const entry: AdjustmentEntry = { ...head, at: 5, by: 'jane', source: 'change', limits };

describe('adjustments in a file', () => {
  it('are there again after a restart, with their history and the names of their windows', async () => {
    const path = newPath();
    expect(await createFileAdjustments(path).append(undefined, entry)).toBe(true);
    const store = createFileAdjustments(path);
    expect(store.durable).toBe(true);
    expect(await store.read(undefined)).toMatchObject({
      kind: 'all',
      state: {
        head,
        adjustments: [{ target: { account: 'a' }, windows: [{ max: 5, durationMs: 60_000, name: 'few' }], by: 'jane' }],
      },
    });
    expect(await store.history(undefined, 10)).toEqual([entry]);
  });

  it('are unchanged if the file cannot be written, and the call fails', async () => {
    const path = newPath();
    const store = createFileAdjustments(path);
    await store.append(undefined, entry);
    const before = readFileSync(path, 'utf8');
    const unwritable = {
      ...entry,
      version: 2,
      nonce: 'm',
      toJSON: () => {
        throw new Error('the disk is full');
      },
    };
    await expect(store.append(head, unwritable)).rejects.toThrow(/the store is unavailable: the disk is full/);
    expect(await store.read(head)).toMatchObject({ kind: 'same' });
    expect(readFileSync(path, 'utf8')).toBe(before);
    expect(readdirSync(folder).filter((name) => name.endsWith('.new'))).toEqual([]);
  });

  it.each([
    'x',
    'null',
    '{"format":2}',
    '{"format":1}',
    JSON.stringify({ format: 1, head, adjustments: [], recent: [{ ...entry, limits: 'x' }] }),
    JSON.stringify({ format: 1, head, adjustments: [{ ...entry, target: { account: 7 } }], recent: [] }),
    JSON.stringify({ format: 1, head, adjustments: [{ ...entry, target: { acount: 'a' }, windows: [] }], recent: [] }),
    JSON.stringify({ format: 1, head, adjustments: [{ ...entry, target: {} }], recent: [] }),
  ])('are not guessed from a file that cannot be read, and the file stays as it is: %s', async (text) => {
    const path = newPath();
    writeFileSync(path, text);
    const store = createFileAdjustments(path);
    await expect(store.read(undefined)).rejects.toThrow(`${path} has no adjustments that can be read: correct it`);
    await expect(store.append(undefined, entry)).rejects.toThrow(/cannot be read|has no adjustments/);
    expect(readFileSync(path, 'utf8')).toBe(text);
    rmSync(path);
    expect((await store.read(undefined)).kind).toBe('none');
  });

  it('need a path, and a clock with now()', () => {
    expect(() => createFileAdjustments('')).toThrow(/path: must be the path of a file/);
    expect(() => createFileAdjustments('a', { clock: {} } as object)).toThrow(/clock: must be an object with a method/);
    expect(() => createFileAdjustments('a', { path: 'b' } as object)).toThrow(/options\.path: unknown option/);
  });

  it('fail if the folder does not exist', async () => {
    const store = createFileAdjustments(join(folder, 'missing', 'a.json'));
    await expect(store.append(undefined, entry)).rejects.toThrow(/ENOENT/);
    expect((await store.read(undefined)).kind).toBe('none');
  });
});
