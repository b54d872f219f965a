/** What only adjustments in Redis can show: lost data, old data, values of others, and how long a key is stored. */
import type { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import type { AdjustedLimit, AdjustmentEntry, AdjustTarget, Head } from '../../src/core/adjustment.ts';
import { parseLimit } from '../../src/core/limit.ts';
import type { AdjustmentStore } from '../../src/shared-limits/ports.ts';
import { Replica } from '../../src/shared-limits/replica.ts';
import { createRedisAdjustments, type RedisAdjustmentsOptions } from '../../src/shared-limits/stores/redis.ts';
import {
  readHistory,
  readInstances,
  readPartReply,
  readReadReply,
} from '../../src/shared-limits/stores/redis-reply.ts';
import { adjustmentKeys } from '../../src/stores/redis/keys.ts';
import { slotOf } from '../../src/stores/redis/server-of.ts';
import { redisForFile } from '../support/ioredis-for-file.ts';

const client = redisForFile();

let prefixes = 0;
const newPrefix = (): string => `adjustments-${process.pid}-${prefixes++}`;
const storeAt = (prefix: string, options: RedisAdjustmentsOptions = {}): AdjustmentStore =>
  createRedisAdjustments(client, { prefix, deadlineMs: 10_000, logger: false, ...options });

let nonces = 0;
const entryAfter = (head: Head | undefined, target: AdjustTarget, window: string): AdjustmentEntry => ({
  ...{ version: (head?.version ?? 0) + 1, nonce: `n${nonces++}`, at: 1_800_000_000_000, by: 'jane', source: 'change' },
  limits: [{ target, from: undefined, to: parseLimit([window]) }],
});
const put = (replica: Replica, account: string, window = '5/1m') =>
  replica.append((head) => entryAfter(head, { account }, window));
const accountsOf = (replica: Replica) => [...replica.adjustments.values()].map(({ target }) => target.account).sort();

describe('adjustments in Redis', () => {
  it('share a slot, and do not expire; only what is stored of processes does', async () => {
    const prefix = newPrefix();
    const { adjustments, history, processes } = adjustmentKeys(prefix);
    expect(new Set([adjustments, history, processes].map(slotOf)).size).toBe(1);
    const replica = new Replica(storeAt(prefix));
    await put(replica, 'a');
    await storeAt(prefix).read(replica.head, 'host:1');
    const expiries = await Promise.all([adjustments, history, processes].map((key) => client.pttl(key)));
    const hour = expect.closeTo(3_600_000, -5);
    expect(expiries).toEqual([-1, -1, hour]);
  });

  it('and processes that are gone make room when another one comes', async () => {
    const prefix = newPrefix();
    const { processes } = adjustmentKeys(prefix);
    const old = Array.from({ length: 1_000 }, (_, i) => [`old${i}`, '1:1:n'] as const);
    await client.hset(processes, Object.fromEntries(old));
    await storeAt(prefix).read(undefined, 'new');
    expect(await client.hkeys(processes)).toEqual(['new']);
  });

  it('and a process that is one of a thousand goes on to be listed; only a new one finds no room', async () => {
    const prefix = newPrefix();
    const { processes } = adjustmentKeys(prefix);
    let now = 1_000_000;
    const store = storeAt(prefix, { clock: { now: () => now } });
    await store.read(undefined, 'mine');
    const others = Array.from({ length: 999 }, (_, i) => [`p${i}`, `${now + 5_000}::`]);
    await client.hset(processes, Object.fromEntries(others));
    now += 9_000;
    await store.read(undefined, 'mine');
    await store.read(undefined, 'new');
    const listed = await store.instances();
    expect(listed).toHaveLength(1_000);
    expect(listed.find(({ name }) => name === 'mine')?.ageMs).toBe(0);
  });

  it('and many large changes: a reply has about a megabyte of them, so that the server is not kept busy', async () => {
    const store = storeAt(newPrefix());
    const entries: AdjustmentEntry[] = [];
    for (let i = 0; i < 150; i++) {
      const [limit] = entryAfter(undefined, { account: '' }, '5/1m').limits as [AdjustedLimit];
      const limits = Array.from({ length: 100 }, (_, n) => ({
        ...limit,
        target: { account: `${n}`.padEnd(100, '-') },
      }));
      const entry = { ...entryAfter(entries.at(-1), {}, '5/1m'), limits };
      expect(await store.append(entries.at(-1), entry)).toBe(true);
      entries.push(entry);
    }
    const all = await store.read(undefined);
    const { state } = all as Extract<typeof all, { kind: 'all' }>;
    expect(JSON.stringify(state.recent).length).toBeLessThan(2_000_000);
    expect(state.recent).toEqual(entries.slice(-state.recent.length));
    expect(state).toMatchObject({ head: { version: 150 }, adjustments: { length: 100 } });
    expect(await store.read(entries[139])).toMatchObject({ kind: 'changes', entries: { length: 10 } });
    expect(await store.read(entries[0])).toMatchObject({ kind: 'all', state: { adjustments: { length: 100 } } });
  });

  it('that are many come in parts, with the changes that come meanwhile', async () => {
    const prefix = newPrefix();
    const limitsOf = (from: number, window: string): AdjustedLimit[] =>
      Array.from({ length: 2_000 }, (_, n) => ({
        ...{ target: { account: `${from + n}`.padEnd(200, '-') }, from: undefined, to: parseLimit([window]) },
      }));
    const writer = storeAt(prefix);
    const first = { ...entryAfter(undefined, {}, '5/1m'), limits: limitsOf(0, '5/1m') };
    expect(await writer.append(undefined, first)).toBe(true);
    // The server knows the script from now on, so each reading is one command.
    await writer.read(first);
    let replies = 0;
    const second = { ...entryAfter(first, {}, '5/1m'), limits: limitsOf(1_000, '6/1m') };
    const evalsha = Reflect.get(client, 'evalshaBuffer').bind(client);
    const value = async (...command: string[]): Promise<unknown> => {
      const reply = await evalsha(...command);
      if (++replies === 2) expect(await writer.append(first, second)).toBe(true);
      return reply;
    };
    const watched = Object.create(client, { evalshaBuffer: { value } }) as Redis;
    const reader = createRedisAdjustments(watched, { prefix, deadlineMs: 10_000, logger: false });
    const reply = await reader.read(undefined);
    const { state } = reply as Extract<typeof reply, { kind: 'all' }>;
    expect(replies).toBeGreaterThan(3);
    expect(state.head).toEqual({ version: second.version, nonce: second.nonce });
    const found = new Map(
      state.adjustments.map(({ target, windows }) => [Number.parseInt(target.account ?? '', 10), windows]),
    );
    expect(found).toEqual(
      new Map(Array.from({ length: 3_000 }, (_, n) => [n, parseLimit([n < 1_000 ? '5/1m' : '6/1m'])])),
    );
    expect(await reader.read(state.head)).toMatchObject({ kind: 'same' });
  });

  it('come back from the processes that know them, after the server has lost them', async () => {
    const prefix = newPrefix();
    const [one, other] = [new Replica(storeAt(prefix)), new Replica(storeAt(prefix))];
    await put(one, 'a');
    await other.refresh();
    await put(one, 'b');
    await client.del(...Object.values(adjustmentKeys(prefix)));
    await other.refresh();
    await one.refresh();
    await other.refresh();
    const late = new Replica(storeAt(prefix));
    await late.refresh();
    for (const replica of [one, other, late]) {
      expect(replica.head).toEqual(one.head);
      expect(accountsOf(replica)).toEqual(['a', 'b']);
    }
    const history = await storeAt(prefix).history(undefined, 10);
    expect(history.map(({ version, by }) => [version, by])).toEqual([
      [2, 'jane'],
      [1, 'jane'],
    ]);
  });

  it.each(['adjustments', 'history'] as const)('go on if only the key of the %s is lost', async (lost) => {
    const prefix = newPrefix();
    const replica = new Replica(storeAt(prefix));
    await put(replica, 'a');
    await put(replica, 'b');
    await client.del(adjustmentKeys(prefix)[lost]);
    await replica.refresh();
    await put(replica, 'c');
    const late = new Replica(storeAt(prefix));
    await late.refresh();
    expect([late.head, accountsOf(late)]).toEqual([replica.head, ['a', 'b', 'c']]);
  });

  it('of an old server that another process has written to replace those of this process', async () => {
    const prefix = newPrefix();
    const { adjustments, history } = adjustmentKeys(prefix);
    const replica = new Replica(storeAt(prefix));
    await put(replica, 'a');
    const old = [await client.dumpBuffer(adjustments), await client.dumpBuffer(history)];
    await put(replica, 'b');
    await client.restore(adjustments, 0, old[0] as Buffer, 'REPLACE');
    await client.restore(history, 0, old[1] as Buffer, 'REPLACE');
    const other = new Replica(storeAt(prefix));
    await put(other, 'c');
    await replica.refresh();
    expect([replica.head, accountsOf(replica)]).toEqual([other.head, ['a', 'c']]);
  });

  it('200 changes of four processes end in one list, and the history makes the same', async () => {
    const prefix = newPrefix();
    const replicas = Array.from({ length: 4 }, () => new Replica(storeAt(prefix)));
    await Promise.all(
      replicas.map(async (replica, i) => {
        for (let n = 0; n < 50; n++) await put(replica, `acc_${(i * n) % 7}`, `${n}/1m`);
      }),
    );
    await Promise.all(replicas.map((replica) => replica.refresh()));
    const [first] = replicas as [Replica];
    for (const replica of replicas) expect(replica.adjustments).toEqual(first.adjustments);
    const history = await storeAt(prefix).history(undefined, 1_000);
    expect(history.map(({ version }) => version)).toEqual(Array.from({ length: 200 }, (_, i) => 200 - i));
    const last = new Map(
      history.toReversed().flatMap(({ limits }) => limits.map((one) => [one.target.account, one.to])),
    );
    expect(new Map([...first.adjustments.values()].map((one) => [one.target.account, one.windows]))).toEqual(last);
  });

  it('of a large history come in parts of about a megabyte', async () => {
    const prefix = newPrefix();
    const replica = new Replica(storeAt(prefix));
    const reason = 'x'.repeat(60_000);
    for (let i = 0; i < 30; i++) await replica.append((head) => ({ ...entryAfter(head, {}, '5/1m'), reason }));
    const store = storeAt(prefix);
    const parts: number[][] = [];
    for (let before: number | undefined; ; ) {
      const versions = (await store.history(before, 1_000)).map(({ version }) => version);
      if (versions.length === 0) break;
      parts.push(versions);
      before = versions.at(-1);
    }
    expect(parts.flat()).toEqual(Array.from({ length: 30 }, (_, i) => 30 - i));
    expect(parts.map(({ length }) => length)).toEqual([20, 10]);
    expect(await store.history(undefined, 2)).toHaveLength(2);
  });

  it('of another type are an error that names the reason, and change nothing', async () => {
    const prefix = newPrefix();
    const errors: unknown[] = [];
    await client.set(adjustmentKeys(prefix).adjustments, 'not ours');
    const store = storeAt(prefix, { onError: (error) => errors.push(error) });
    await expect(store.read(undefined)).rejects.toThrow(/WRONGTYPE/);
    await expect(store.append(undefined, entryAfter(undefined, {}, '5/1m'))).rejects.toThrow(/WRONGTYPE/);
    expect(errors).toHaveLength(2);
    expect(await client.get(adjustmentKeys(prefix).adjustments)).toBe('not ours');
  });

  it('rejects options that it does not know or cannot use', () => {
    expect(() => createRedisAdjustments(client, { prefx: 'a' } as object)).toThrow(/options\.prefx: unknown option/);
    expect(() => createRedisAdjustments(client, { prefix: '{a}' })).toThrow(/prefix: must be a string without braces/);
    expect(() => createRedisAdjustments(client, { deadlineMs: 0 })).toThrow(/deadlineMs: must be an integer of 1/);
  });
});

describe('a reply about adjustments that headgate did not write', () => {
  const entry = { version: 1, nonce: 'n', at: 1, by: 'jane', source: 'change', limits: [] };
  const adjustment = { target: {}, windows: [], version: 1, at: 1, by: 'jane' };
  const all = (head: string, adjusted: unknown, of: unknown = entry) =>
    ['1', 'all', [JSON.stringify(of)], head, '0', ['["default",""]', JSON.stringify(adjusted)]] as const;

  it('is read if it is right', async () => {
    expect(await readReadReply(all('1:n', adjustment))).toMatchObject({
      ...{ kind: 'all', head: { version: 1 } },
      part: { next: undefined, adjustments: new Map([['["default",""]', adjustment]]) },
    });
  });

  it.each<unknown>([
    null,
    ['x', 'same', []],
    ['1', 'other', []],
    ['1', 'changes', 'x'],
    ['1', 'changes', ['"x"']],
    all('x', adjustment),
    all('1:n', adjustment, { ...entry, source: 'x' }),
    all('1:n', adjustment, { ...entry, nonce: 7 }),
  ])('is an error: %j', async (reply) => {
    await expect(readReadReply(reply)).rejects.toThrow(/^unexpected (reply of Redis|value among) |^adjustment\[0\]: /);
  });

  it.each([
    { windows: undefined },
    { windows: [{ max: -1, durationMs: 1 }] },
    { by: 7 },
    { until: 'x' },
    { target: { tenant: 'a' } },
  ])('is left out, if it is an adjustment: %j', async (wrong) => {
    const fields = ['wrong', JSON.stringify({ ...adjustment, ...wrong }), 'right', JSON.stringify(adjustment)];
    expect((await readPartReply(['1', 'part', '7', fields])).adjustments).toEqual(
      new Map([
        ['wrong', undefined],
        ['right', expect.objectContaining(adjustment)],
      ]),
    );
  });

  it('is left out and counted, if it is a limit of a change', async () => {
    const limits = [
      { target: {}, to: [] },
      { target: {}, to: 'x' },
    ];
    expect(await readReadReply(['1', 'changes', [JSON.stringify({ ...entry, limits })]])).toMatchObject({
      unreadable: 1,
      entries: [{ version: 1, limits: [{ target: {}, to: [] }] }],
    });
  });

  it('is an error in a list too', async () => {
    await expect(readHistory(['1', '{}'])).rejects.toThrow(/unexpected value/);
    // One row must not hide the others.
    const strange = ['', 'x', '9', '9:', '9:x', '9:1', '9:1:', `${'9'.repeat(400)}::`, '9:x:n'];
    expect(readInstances(['9', ...strange.flatMap((row) => ['name', row]), 'new', '9::'])).toMatchObject([
      { name: 'new' },
    ]);
    expect(readInstances(['9', 'name', '8:1:n', 'new', '9::'])).toEqual([
      { name: 'name', head: { version: 1, nonce: 'n' }, ageMs: 1 },
      { name: 'new', head: undefined, ageMs: 0 },
    ]);
  });
});
