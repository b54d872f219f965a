/** What a process last knew, in a file: for a start while the store is away, or has lost its data. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, it } from 'vitest';
import { createKeptFile } from '../../src/file.ts';
import { createMemoryAdjustments } from '../../src/memory.ts';
import {
  createSharedLimits,
  type SharedLimits,
  type SharedLimitsEvent,
  type SharedLimitsOptions,
} from '../../src/shared-limits/index.ts';
import type { AdjustmentStore } from '../../src/shared-limits/ports.ts';

const folder = mkdtempSync(join(tmpdir(), 'headgate-kept-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const opened: SharedLimits[] = [];
afterEach(() => Promise.all(opened.splice(0).map((limits) => limits.close())));
let files = 0;
const newPath = (): string => join(folder, `${files++}.json`);

const AWAY = new Proxy(createMemoryAdjustments(), {
  get: (target, name) =>
    name === 'durable' || name === 'close' ? Reflect.get(target, name) : () => Promise.reject(new Error('away')),
});
const JANE = { by: 'jane' };
const TARGET = { account: 'acc_1' };

/** A process with a kept file. It reads the store every 10 ms. */
function start(adjustments: AdjustmentStore, path: string, options: Partial<SharedLimitsOptions> = {}) {
  const events: SharedLimitsEvent[] = [];
  const limits = createSharedLimits({
    ...{ base: { allMethods: ['60/1m'] }, adjustments, keptFile: createKeptFile(path), refreshMs: 10, logger: false },
    onEvent: (event) => events.push(event),
    ...options,
  });
  opened.push(limits);
  const max = (): number | undefined => limits.windowSet({ ...TARGET, route: 'GET /emails' }).windows[0]?.max;
  const named = (type: SharedLimitsEvent['type']) => events.filter((event) => event.type === type);
  return { limits, named, max };
}

/** A kept file with an adjustment of `max` per minute, and the store that the process had. */
async function keep(max: number, path = newPath(), store = createMemoryAdjustments()) {
  const { limits } = start(store, path);
  await limits.put(TARGET, [`${max}/1m`], JANE);
  await limits.close();
  return { path, store };
}
const keptMax = (path: string) => JSON.parse(readFileSync(path, 'utf8')).adjustments[0].windows[0].max;

it('a change is in the file at once, and the file belongs to its user only', async () => {
  const path = newPath();
  const { limits } = start(createMemoryAdjustments(), path);
  await limits.put(TARGET, ['50/1m'], JANE);
  await expect.poll(() => readdirSync(folder).includes(`${files - 1}.json`) && keptMax(path)).toBe(50);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  // The next one follows within a second, and at the latest when the process ends.
  await limits.put(TARGET, ['40/1m'], JANE);
  await limits.close();
  expect(keptMax(path)).toBe(40);
});

it('while the store is away, a start is judged by the file, and then by the store', async () => {
  const { path, store } = await keep(50);
  const away = start(AWAY, path);
  await expect.poll(away.max).toBe(50);
  expect(away.limits.state).toMatchObject({ source: 'file', version: 1, ageMs: undefined, adjustments: 1 });
  await away.limits.ready({ timeoutMs: 1 });
  expect(away.limits.state.source).toBe('file');
  await away.limits.close();
  const back = start(store, path);
  await back.limits.ready();
  expect([back.max(), back.limits.state.source, back.named('restored')]).toEqual([50, 'store', []]);
});

it('a store that has lost its data gets it back', async () => {
  const { path } = await keep(50);
  const empty = createMemoryAdjustments();
  const next = start(empty, path);
  await next.limits.ready();
  expect([next.max(), next.limits.state.source]).toEqual([50, 'store']);
  expect(next.named('restored')).toEqual([{ type: 'restored', revision: next.limits.state.revision }]);
  expect((await next.limits.history()).map(({ by }) => by)).toEqual(['jane']);
});

it('a change that comes before the file is read follows its history', async () => {
  const { path } = await keep(50);
  const next = start(createMemoryAdjustments(), path);
  const { version } = await next.limits.put({ account: 'acc_2' }, ['30/1m'], JANE);
  expect([version, next.max(), next.named('forked')]).toEqual([2, 50, []]);
});

it('a store that is ahead of the file wins, in silence', async () => {
  const { path, store } = await keep(50);
  await keep(40, newPath(), store);
  const next = start(store, path);
  await next.limits.ready();
  expect([next.max(), next.named('forked'), next.named('restored')]).toEqual([40, [], []]);
  await expect.poll(() => keptMax(path)).toBe(40);
});

it('a store with another history wins, it is told, and the file follows', async () => {
  const { path } = await keep(50);
  const { store } = await keep(40);
  const logged: string[] = [];
  const next = start(store, path, { logger: (message) => logged.push(message) });
  await next.limits.ready();
  expect(next.max()).toBe(40);
  expect(next.named('forked')).toMatchObject([{ lost: [{ by: 'jane', limits: [{ to: [{ max: 50 }] }] }] }]);
  expect(logged).toEqual([expect.stringContaining('the change 1 by jane is gone, the store has another history')]);
  await expect.poll(() => keptMax(path)).toBe(40);
});

it.each([
  ['broken', '{"format":1,'],
  ['foreign', '{"name":"app"}'],
  ['of a later version', '{"format":2}'],
  ['without its last change', '{"format":1,"head":{"version":2,"nonce":"x"},"adjustments":[],"recent":[{}]}'],
  [
    'with a history that ends elsewhere',
    '{"format":1,"head":{"version":2,"nonce":"x"},"adjustments":[],"recent":[{"version":1,"nonce":"y","at":1,"by":"j","source":"change","limits":[]}]}',
  ],
])('a file that is %s is told and left', async (_, text) => {
  const path = newPath();
  writeFileSync(path, text);
  const logged: unknown[] = [];
  const next = start(createMemoryAdjustments(), path, { logger: (message) => logged.push(message) });
  await next.limits.put(TARGET, ['50/1m'], JANE);
  expect([next.max(), next.limits.state.source]).toEqual([50, 'store']);
  await next.limits.close();
  expect(readFileSync(path, 'utf8')).toBe(text);
  expect(next.named('notKept')).toMatchObject([{ error: { message: expect.stringContaining(`${path} has no adj`) } }]);
  expect(logged).toEqual(['headgate: the kept file of the adjustments cannot be used']);
});

it('a file that cannot be used at all is told, and nothing else suffers', async () => {
  const next = start(AWAY, folder);
  await expect.poll(() => next.named('notKept')).toMatchObject([{ error: { message: `${folder} is not a file` } }]);
  expect([next.max(), next.limits.state.source]).toEqual([60, 'base']);
});

it('a file that cannot be written is told once, and tried again', async () => {
  let isFull = true;
  const saved: number[] = [];
  const keptFile = {
    load: () => undefined,
    save: ({ head }: { readonly head: { readonly version: number } }) => {
      if (isFull) throw new Error('the disk is full');
      saved.push(head.version);
    },
  };
  const next = start(createMemoryAdjustments(), '-', { keptFile });
  await next.limits.put(TARGET, ['50/1m'], JANE);
  await expect.poll(() => next.named('notKept')).toMatchObject([{ error: { message: 'the disk is full' } }]);
  isFull = false;
  await next.limits.close();
  expect([saved, next.named('notKept').length]).toEqual([[1], 1]);
});

it('processes with one file leave a whole one, and nothing else', async () => {
  const path = newPath();
  const store = createMemoryAdjustments();
  const abandoned = [`${path}.0.new`, `${path}.1.new`] as const;
  for (const part of abandoned) writeFileSync(part, '{');
  utimesSync(abandoned[0], 0, 0);
  const processes = Array.from({ length: 4 }, () => start(store, path));
  for (let i = 0; i < 10; i++) await processes[i % 4]?.limits.put({ account: `acc_${i}` }, ['50/1m'], JANE);
  await Promise.all(processes.map(({ limits }) => limits.close()));
  const next = start(AWAY, path);
  await expect.poll(() => next.limits.list().length).toBeGreaterThan(0);
  expect(next.named('notKept')).toEqual([]);
  // One that is young may be another process's.
  const left = readdirSync(folder).filter((name) => name.endsWith('.new'));
  expect(left.map((name) => join(folder, name))).toEqual([abandoned[1]]);
});

it('options are checked', () => {
  const adjustments = createMemoryAdjustments();
  expect(() => createKeptFile('')).toThrow(/path: must be the path of a file/);
  const options = { base: { allMethods: ['60/1m'] }, adjustments };
  expect(() => createSharedLimits({ ...options, keptFile: {} } as never)).toThrow(
    /keptFile: must have load\(\), as createKeptFile\(\) does/,
  );
  expect(() => createSharedLimits({ ...options, readOnly: 1 } as never)).toThrow(/readOnly: must be a boolean/);
});
