/** What only adjustments in PostgreSQL can show: lost data, an older backup, rights, and bounded tables. */
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import type { AdjustedLimit, AdjustmentEntry, AdjustTarget, Head } from '../../src/core/adjustment.ts';
import { parseLimit } from '../../src/core/limit.ts';
import { createPostgresAdjustments, type PostgresAdjustmentsOptions } from '../../src/postgres.ts';
import type { AdjustmentStore } from '../../src/shared-limits/ports.ts';
import { Replica } from '../../src/shared-limits/replica.ts';
import { readHistoryRows, readInstanceRows, readReplyRows } from '../../src/shared-limits/stores/postgres-rows.ts';
import { migrated, newPool, sharedUrl } from '../support/postgres.ts';

const pool = newPool();
let schemas = 0;
async function newSchema(): Promise<string> {
  const schema = `adjustments_${schemas++}`;
  await migrated(pool, schema);
  return schema;
}
const storeAt = (schema: string, options: PostgresAdjustmentsOptions = {}): AdjustmentStore =>
  createPostgresAdjustments(pool, { schema, deadlineMs: 10_000, logger: false, ...options });
const countIn = async (table: string) => Number((await pool.query(`select count(*) from ${table}`)).rows[0].count);

let nonces = 0;
const entryAfter = (head: Head | undefined, target: AdjustTarget, window: string): AdjustmentEntry => ({
  ...{ version: (head?.version ?? 0) + 1, nonce: `n${nonces++}`, at: 1_800_000_000_000, by: 'jane', source: 'change' },
  limits: [{ target, from: undefined, to: parseLimit([window]) }],
});
const put = (replica: Replica, account: string, window = '5/1m') =>
  replica.append((head) => entryAfter(head, { account }, window));
const accountsOf = (replica: Replica) => [...replica.adjustments.values()].map(({ target }) => target.account).sort();

describe('adjustments in PostgreSQL', () => {
  it('each method is one statement', async () => {
    const sent: string[] = [];
    const client = await pool.connect();
    const query = client.query.bind(client);
    const watched = {
      totalCount: 1,
      waitingCount: 0,
      query: pool.query.bind(pool),
      connect: async () =>
        Object.create(client, {
          query: {
            value(config: { text: string }) {
              sent.push(config.text);
              return query(config);
            },
          },
          release: { value: () => undefined },
        }),
    };
    const schema = await newSchema();
    const store = createPostgresAdjustments(watched, { schema, deadlineMs: 10_000, logger: false });
    const entry = entryAfter(undefined, {}, '5/1m');
    await store.append(undefined, entry);
    await store.read(entry, 'one');
    const all = await store.read(undefined);
    await store.restore(entry, (all as Extract<typeof all, { kind: 'all' }>).state);
    await store.history(undefined, 10);
    await store.instances();
    client.release();
    expect(sent).toHaveLength(6);
  });

  it('bounds the history, and the processes, of which those that are gone make room', async () => {
    const schema = await newSchema();
    let now = 1_000_000;
    const store = storeAt(schema, { clock: { now: () => now } });
    const recent = [entryAfter(undefined, {}, '5/1m')];
    const head = { version: 20_000, nonce: 'last' };
    await store.restore(undefined, { head, adjustments: [], recent });
    expect(await countIn(`${schema}.adjustment_history`)).toBe(0);
    await store.append(head, entryAfter(head, {}, '5/1m'));
    expect(await countIn(`${schema}.adjustment_history`)).toBe(1);

    await store.read(undefined, 'mine');
    await pool.query(`insert into ${schema}.adjustment_processes (id, name, heard_at)
      select sha256(n::text::bytea), to_json('p' || n)::text, ${now + 5_000} from generate_series(1, 999) n`);
    now += 9_000;
    await store.read(undefined, 'mine');
    await store.read(undefined, 'new');
    const listed = await store.instances();
    expect(listed).toHaveLength(1_000);
    expect(listed.find(({ name }) => name === 'mine')?.ageMs).toBe(0);
    now += 9_000;
    await store.read(head, 'new');
    expect((await store.instances()).map(({ name }) => name).sort()).toEqual(['mine', 'new']);
    expect(await countIn(`${schema}.adjustment_processes`)).toBe(2);
  });

  it('returns about a megabyte of entries at a time', async () => {
    const store = storeAt(await newSchema());
    const entries: AdjustmentEntry[] = [];
    for (let i = 0; i < 150; i++) {
      const [limit] = entryAfter(undefined, { account: '' }, '5/1m').limits as [AdjustedLimit];
      const limits = Array.from({ length: 100 }, (_, n) => ({
        ...limit,
        target: { account: `${n}`.padEnd(100, '-') },
      }));
      entries.push({ ...entryAfter(entries.at(-1), {}, '5/1m'), limits });
    }
    const last = entries.at(-1) as AdjustmentEntry;
    expect(await store.restore(undefined, { head: last, adjustments: [], recent: entries })).toBe(true);
    const all = await store.read(undefined);
    const { state } = all as Extract<typeof all, { kind: 'all' }>;
    expect(JSON.stringify(state.recent).length).toBeLessThan(2_000_000);
    expect(state.recent).toEqual(entries.slice(-state.recent.length));
    expect(await store.read(entries[139])).toMatchObject({ kind: 'changes', entries: { length: 10 } });
    expect(await store.read(entries[0])).toMatchObject({ kind: 'all' });
    const parts: number[][] = [];
    for (let before: number | undefined; ; before = parts.at(-1)?.at(-1)) {
      const versions = (await store.history(before, 1_000)).map(({ version }) => version);
      if (versions.length === 0) break;
      parts.push(versions);
    }
    expect(parts.flat()).toEqual(Array.from({ length: 150 }, (_, i) => 150 - i));
    expect(parts.length).toBeGreaterThan(1);
    expect(await store.history(undefined, 2)).toHaveLength(2);
  });

  it('an account of any length and any characters is one adjustment; of a limit given twice, the last counts', async () => {
    const store = storeAt(await newSchema());
    const account = `${'x'.repeat(100_000)}\u0000\ud800`;
    const first = entryAfter(undefined, { account }, '5/1m');
    const limits = [...first.limits, ...entryAfter(first, { account }, '6/1m').limits];
    await store.append(undefined, { ...first, limits });
    const all = await store.read(undefined);
    const { state } = all as Extract<typeof all, { kind: 'all' }>;
    expect(state.adjustments).toMatchObject([{ target: { account }, windows: parseLimit(['6/1m']) }]);
    await store.append(first, {
      ...entryAfter(first, { account }, '5/1m'),
      limits: [{ ...limits[0], to: undefined }] as never,
    });
    expect(await store.read(undefined)).toMatchObject({ kind: 'all', state: { adjustments: [] } });
  });

  it.each([
    ['all rows', ['adjustment_head', 'adjustments', 'adjustment_history']],
    ['the head', ['adjustment_head']],
    ['the history', ['adjustment_history']],
  ])('come back from the processes that know them, after the server lost %s', async (_, tables) => {
    const schema = await newSchema();
    const [one, other] = [new Replica(storeAt(schema)), new Replica(storeAt(schema))];
    await put(one, 'a');
    await other.refresh();
    await put(one, 'b');
    for (const table of tables) await pool.query(`delete from ${schema}.${table}`);
    for (const replica of [other, one, other]) await replica.refresh();
    await put(one, 'c');
    await other.refresh();
    const late = new Replica(storeAt(schema));
    await late.refresh();
    for (const replica of [one, other, late])
      expect([replica.head, accountsOf(replica)]).toEqual([one.head, ['a', 'b', 'c']]);
  });

  it('restored from an older backup: brought forward; but a change that another process made since then stays', async () => {
    const schema = await newSchema();
    const replica = new Replica(storeAt(schema));
    await put(replica, 'a');
    const tables = ['adjustment_head', 'adjustments', 'adjustment_history'];
    for (const table of tables) await pool.query(`create table ${schema}.old_${table} as table ${schema}.${table}`);
    const restoreBackup = async () => {
      for (const table of tables)
        await pool.query(`delete from ${schema}.${table}; insert into ${schema}.${table} table ${schema}.old_${table}`);
    };
    await put(replica, 'b');
    await restoreBackup();
    await replica.refresh();
    const late = new Replica(storeAt(schema));
    await late.refresh();
    expect([late.head, accountsOf(late)]).toEqual([replica.head, ['a', 'b']]);
    await restoreBackup();
    const other = new Replica(storeAt(schema));
    await put(other, 'c');
    await replica.refresh();
    expect([replica.head, accountsOf(replica)]).toEqual([other.head, ['a', 'c']]);
  });

  it('200 changes of four processes end in one list, and the history makes the same', async () => {
    const schema = await newSchema();
    const replicas = Array.from({ length: 4 }, () => new Replica(storeAt(schema)));
    await Promise.all(
      replicas.map(async (replica, i) => {
        for (let n = 0; n < 50; n++) await put(replica, `acc_${(i * n) % 7}`, `${n}/1m`);
      }),
    );
    await Promise.all(replicas.map((replica) => replica.refresh()));
    const [first] = replicas as [Replica];
    for (const replica of replicas) expect(replica.adjustments).toEqual(first.adjustments);
    const history = await storeAt(schema).history(undefined, 1_000);
    expect(history.map(({ version }) => version)).toEqual(Array.from({ length: 200 }, (_, i) => 200 - i));
    const last = new Map(
      history.toReversed().flatMap(({ limits }) => limits.map((one) => [one.target.account, one.to])),
    );
    expect(new Map([...first.adjustments.values()].map((one) => [one.target.account, one.windows]))).toEqual(last);
  });

  it('a process that may only read obeys; to note it, or to change anything, is an error that names the rights', async () => {
    const schema = await newSchema();
    const writer = new Replica(storeAt(schema));
    await put(writer, 'a');
    await pool.query(`drop role if exists adjustments_reader; create role adjustments_reader login;
      grant usage on schema ${schema} to adjustments_reader;
      grant select on all tables in schema ${schema} to adjustments_reader`);
    const reader = new pg.Pool({ connectionString: sharedUrl().replace('postgres@', 'adjustments_reader@') });
    const errors: unknown[] = [];
    try {
      const store = createPostgresAdjustments(reader, {
        schema,
        deadlineMs: 10_000,
        onError: (error) => errors.push(error),
        logger: false,
      });
      expect(await store.read(undefined)).toMatchObject({ kind: 'all', state: { head: writer.head } });
      expect(await store.history(undefined, 1)).toHaveLength(1);
      expect(await store.instances()).toEqual([]);
      expect(errors).toEqual([]);
      const setup = expect.objectContaining({
        code: 'store_setup',
        message: expect.stringContaining('cannot be used'),
      });
      for (let i = 0; i < 7; i++) await expect(store.read(undefined, 'me')).rejects.toEqual(setup);
      await expect(store.append(writer.head, entryAfter(writer.head, {}, '1/1m'))).rejects.toEqual(setup);
      // The server is well, so the circuit breaker stays closed.
      expect(await store.read(writer.head)).toMatchObject({ kind: 'same' });
    } finally {
      await reader.end();
      await pool.query('drop owned by adjustments_reader; drop role adjustments_reader');
    }
  });

  it('on a read-only server, as after a failover: reads go on, and a change is an outage', async () => {
    const schema = await newSchema();
    const writer = new Replica(storeAt(schema));
    await put(writer, 'a');
    const standby = newPool({ options: '-c default_transaction_read_only=on' });
    const store = createPostgresAdjustments(standby, { schema, deadlineMs: 10_000, logger: false });
    expect(await store.read(writer.head)).toMatchObject({ kind: 'same' });
    await expect(store.append(writer.head, entryAfter(writer.head, {}, '1/1m'))).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('read-only'),
    });
  });

  it('a change that waits for another one beyond its deadline is not made later', async () => {
    const schema = await newSchema();
    const head = entryAfter(undefined, {}, '5/1m');
    await storeAt(schema).append(undefined, head);
    const blocker = await pool.connect();
    await blocker.query(`begin; select from ${schema}.adjustment_head for update`);
    const late = storeAt(schema, { deadlineMs: 100 }).append(head, entryAfter(head, {}, '6/1m'));
    // The server gives the lock up at about the same time.
    await expect(late).rejects.toMatchObject({ code: expect.stringMatching(/^store_(timeout|unavailable)$/) });
    const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%${schema}%'`;
    await expect.poll(async () => (await pool.query(waiting)).rows.length).toBe(0);
    await blocker.query('commit');
    blocker.release();
    expect(await storeAt(schema).read(head)).toMatchObject({ kind: 'same' });
  });

  it('rejects options that it does not know or cannot use, and a schema that is missing', async () => {
    expect(() => createPostgresAdjustments(pool, { schem: 'a' } as object)).toThrow(/options\.schem: unknown option/);
    expect(() => createPostgresAdjustments(pool, { schema: 'a"b' })).toThrow(/schema: must be 1 to 63/);
    expect(() => createPostgresAdjustments(pool, { deadlineMs: 0 })).toThrow(/deadlineMs: must be an integer from 1/);
    await expect(storeAt('nowhere').read(undefined)).rejects.toMatchObject({
      code: 'store_setup',
      message: expect.stringMatching(/"nowhere" is missing.*call migrate/),
    });
  });
});

describe('rows about adjustments that headgate did not write', () => {
  const entry = { version: 1, nonce: 'n', at: 1, by: 'jane', source: 'change', limits: [] };
  const adjustment = { target: {}, windows: [], version: 1, at: 1, by: 'jane' };
  const head = { now: '1', kind: 'all', version: '1', value: '"n"' };
  const row = (kind: string, value: unknown) => ({ kind, value: JSON.stringify(value) });

  it('are read if they are right; an adjustment or a limit that cannot be read is left out and counted', async () => {
    expect(await readReplyRows([head, row('entry', entry), row('adjustment', adjustment)])).toMatchObject({
      ...{ kind: 'all', now: 1, unreadable: undefined },
      state: { head: { version: 1, nonce: 'n' }, recent: [entry], adjustments: [adjustment] },
    });
    const wrong = [
      { windows: undefined },
      { windows: [{ max: -1, durationMs: 1 }] },
      { by: 7 },
      { target: { a: 'b' } },
    ];
    const rows = wrong.map((each) => row('adjustment', { ...adjustment, ...each }));
    expect(await readReplyRows([head, ...rows, row('adjustment', adjustment)])).toMatchObject({
      unreadable: 4,
      state: { adjustments: [adjustment] },
    });
    const limits = [
      { target: {}, to: [] },
      { target: {}, to: 'x' },
    ];
    expect(await readReplyRows([{ ...head, kind: 'changes' }, row('entry', { ...entry, limits })])).toMatchObject({
      unreadable: 1,
      entries: [{ version: 1, limits: [{ target: {}, to: [] }] }],
    });
  });

  it.each<[string, Parameters<typeof readReplyRows>[0]]>([
    ['no row', []],
    ['another kind', [{ ...head, kind: 'other' }]],
    ['no time', [{ ...head, now: null }]],
    ['no version', [{ ...head, version: 'x' }]],
    ['a nonce that is no text', [{ ...head, value: '7' }]],
    ['an entry of another source', [head, row('entry', { ...entry, source: 'x' })]],
    ['an entry that is no JSON', [head, { kind: 'entry', value: '{' }]],
  ])('are an error: %s', async (_, rows) => {
    await expect(readReplyRows(rows)).rejects.toThrow(/^unexpected (row of PostgreSQL|value) |JSON/);
  });

  it('are an error in a list too', async () => {
    await expect(readHistoryRows([{ entry: '{}' }])).rejects.toThrow(/unexpected value/);
    expect(() => readInstanceRows([{ name: '7', age: '1', version: null, nonce: null }])).toThrow(/unexpected row/);
    expect(readInstanceRows([{ name: '"a"', age: '1', version: '2', nonce: '"n"' }])).toEqual([
      { name: 'a', head: { version: 2, nonce: 'n' }, ageMs: 1 },
    ]);
  });
});
