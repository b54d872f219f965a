/** Rows of the user in the steps of a claim: hostile notes, wrong statements, repeated and concurrent commands. */
import { afterFile } from 'headgate-testbed/after-file';
import { beforeEach, describe, expect, it } from 'vitest';
import { createIdempotency } from '../../../src/idempotency/idempotency.ts';
import type { PostgresClaimStoreOptions } from '../../../src/stores/postgres/claim-options.ts';
import type { ClaimRows } from '../../../src/stores/postgres/claim-rows.ts';
import { createPostgresClaimStore } from '../../../src/stores/postgres/claims.ts';
import { migrate } from '../../../src/stores/postgres/schema.ts';
import { createFakeClock } from '../../../src/testing/fake-clock.ts';
import { claimed, RESULT, ROWS } from '../../support/claim-rows-suite.ts';
import { newPool, sharedUrl } from '../../support/postgres.ts';

// This file has a database of its own: the schema `mails` is in it.
const admin = newPool({ max: 1 });
await admin.query('drop database if exists claim_rows with (force)');
await admin.query('create database claim_rows');
const url = sharedUrl().replace(/\/[^/?]*(\?|$)/, '/claim_rows$1');
const pool = newPool({ connectionString: url });
await pool.query(
  `create schema mails;
   create table mails.emails (id text primary key, state text not null);
   create table mails.outbox (email text, scope text, key text, at bigint);
   create table mails.notes (key text, note jsonb)`,
);
await migrate(pool);
beforeEach(() => pool.query('truncate mails.emails, mails.outbox, mails.notes, headgate.claims'));

const storeWith = (options: PostgresClaimStoreOptions = {}) =>
  createPostgresClaimStore(pool, { rows: ROWS, deadlineMs: 20_000, logger: false, ...options });

function idempotencyWith(options: PostgresClaimStoreOptions = {}) {
  const idempotency = createIdempotency({ store: storeWith(options), logger: false });
  afterFile(() => idempotency.close({ timeoutMs: 0 }));
  return idempotency;
}

const NOTES = { keep: `insert into mails.notes select key, note from step` };
const KEEPING: ClaimRows = { dispatch: NOTES, complete: NOTES, abandon: NOTES };
const all = async (text: string) => (await pool.query(text)).rows;
const states = () => all('select id, state from mails.emails order by id');
const notes = async () => (await all('select note from mails.notes')).map(({ note }) => note);

const ID = { scope: 'app', key: 'k' };
const OTHERS = { token: 't', fingerprint: 'f', retentionMs: 60_000 };
const HELD = { ...OTHERS, generation: 1, leaseMs: 10_000, note: '"dispatched"' };
const BEGIN = { ...OTHERS, leaseMs: 10_000, onOrphan: 'reject', dispatch: false } as const;
const COMPLETE = { ...OTHERS, result: RESULT, note: '"completed"' };
const ABANDON = { ...OTHERS, generation: 1, releasedRetentionMs: 10_000, note: '"abandoned"' };

describe('exactly once', () => {
  it('writes the rows of a step that is repeated once, in one statement and in several', async () => {
    const store = storeWith({ rows: KEEPING });
    await store.begin(ID, BEGIN);
    const twice = <T>(send: () => Promise<T>) => Promise.all([send(), send()]);
    expect(await twice(() => store.dispatch(ID, HELD))).toEqual([{ kind: 'ok' }, { kind: 'ok' }]);
    await store.dispatch(ID, HELD);
    expect(await notes()).toEqual(['dispatched']);
    expect(await twice(() => store.complete(ID, COMPLETE))).toEqual([{ kind: 'ok' }, { kind: 'ok' }]);
    await store.complete(ID, COMPLETE);
    expect(await notes()).toEqual(['dispatched', 'completed']);
  });

  it('writes the rows of a completion that is sent twice at the same time once, also without a record', async () => {
    const sent = Array.from({ length: 8 }, () => storeWith({ rows: KEEPING }).complete(ID, COMPLETE));
    expect(await Promise.all(sent)).toEqual(Array(8).fill({ kind: 'ok' }));
    expect(await notes()).toEqual(['completed']);
  });

  it('writes the rows of a release once', async () => {
    const store = storeWith({ rows: KEEPING });
    await store.begin(ID, BEGIN);
    expect(await Promise.all([store.abandon(ID, ABANDON), store.abandon(ID, ABANDON)])).toEqual([
      { kind: 'released' },
      { kind: 'lost' },
    ]);
    expect(await notes()).toEqual(['abandoned']);
  });

  it('writes nothing for a command that makes no step', async () => {
    const store = storeWith({ rows: KEEPING });
    expect(await store.dispatch(ID, HELD)).toEqual({ kind: 'lost' });
    expect(await store.abandon(ID, ABANDON)).toEqual({ kind: 'lost' });
    await store.complete(ID, { ...COMPLETE, note: undefined });
    expect(await store.dispatch(ID, HELD)).toMatchObject({ kind: 'settled' });
    expect(await store.abandon(ID, ABANDON)).toMatchObject({ kind: 'settled' });
    expect(await store.complete(ID, { ...COMPLETE, token: 'u' })).toMatchObject({ kind: 'superseded' });
    expect(await store.complete(ID, { ...COMPLETE, fingerprint: 'g' })).toEqual({ kind: 'lost' });
    expect(await notes()).toEqual([]);
  });

  it('writes nothing for a release that leaves an orphan, and writes the rows once the owner dispatched', async () => {
    const clock = createFakeClock(1_000_000_000_000);
    const store = storeWith({ rows: KEEPING, clock });
    await store.begin(ID, BEGIN);
    await store.dispatch(ID, HELD);
    const takeOver = async (token: string, generation: number) => {
      clock.advance(20_000);
      await store.begin(ID, { ...BEGIN, token, onOrphan: 'reexecute' });
      return { token, generation };
    };
    expect(await store.abandon(ID, { ...ABANDON, ...(await takeOver('u', 2)) })).toEqual({ kind: 'released' });
    expect(await notes()).toEqual(['dispatched']);
    const owner = await takeOver('v', 3);
    await store.dispatch(ID, { ...HELD, ...owner });
    await store.abandon(ID, { ...ABANDON, ...owner });
    expect(await notes()).toEqual(['dispatched', 'dispatched', 'abandoned']);
  });

  it('sees the rows of a command that it waited for', async () => {
    const idempotency = idempotencyWith();
    await (await claimed(idempotency, 'k')).dispatch();
    const blocker = await pool.connect();
    await blocker.query('begin; select * from headgate.claims for update');
    const completing = idempotency.completeWith(ID, RESULT, { note: { id: 'late', state: 'sent' } });
    await expect
      .poll(async () => (await all(`select from pg_stat_activity where wait_event_type = 'Lock'`)).length)
      .toBe(1);
    await blocker.query(`insert into mails.emails values ('late', 'dispatched'); commit`);
    blocker.release();
    expect(await completing).toBe('completed');
    expect(await states()).toEqual([{ id: 'late', state: 'sent' }]);
  });
});

/** A pool that loses the answers to statements with rows, as often as `lose` says; the server executes them. */
function losing(lose: { left: number }) {
  const real = newPool({ connectionString: url });
  return Object.assign(Object.create(real) as typeof real, {
    async connect() {
      const client = await real.connect();
      const query = client.query.bind(client) as (config: { text: string }) => Promise<unknown>;
      return Object.assign(Object.create(client) as typeof client, {
        async query(config: { text: string }) {
          const answer = await query(config);
          if (config.text.includes('.claims_2(') && lose.left-- > 0) throw new Error('read ECONNRESET');
          return answer;
        },
        release: (isBroken: boolean) => client.release(isBroken),
      });
    },
  });
}

describe('lost answers', () => {
  it.each([1, 2, 3])('%i in a row: each row is written once, and an undispatched claim leaves none', async (lost) => {
    const lose = { left: lost };
    const store = createPostgresClaimStore(losing(lose), { rows: ROWS, deadlineMs: 20_000, logger: false });
    const idempotency = createIdempotency({ store, logger: false });
    const dispatched = await (await claimed(idempotency, 'k')).dispatch({ id: 'k' });
    await idempotency.close({ timeoutMs: 0 });
    lose.left = 0;
    const again = createIdempotency({ store, logger: false });
    if (lost === 1) {
      expect(dispatched).toEqual({ kind: 'ok' });
      expect(await states()).toEqual([{ id: 'k', state: 'dispatched' }]);
    } else {
      // Two tries failed. The release in the background deletes the row, whose insert the server committed.
      expect(dispatched).toMatchObject({ kind: 'unavailable' });
      await expect.poll(states).toEqual([]);
    }
    const claim = await claimed(again, 'other');
    await claim.dispatch({ id: 'other' });
    lose.left = lost;
    const completion = await claim.complete(RESULT, { note: { id: 'other', state: 'sent' } });
    expect(completion).toMatchObject({ kind: 'pending' });
    await again.idle();
    expect(await all(`select state from mails.emails where id = 'other'`)).toEqual([{ state: 'sent' }]);
    expect(await all('select email from mails.outbox')).toEqual([{ email: 'other' }]);
    await again.close();
  });
});

describe('notes', () => {
  it.each([
    ['quotes, brackets and statements', `'; drop table mails.emails; -- " \\ ) $1 $$ step`],
    ['an escaped escape', '\\u0000 \\ud800'],
    ['every JSON value', { a: [1, -0.5, 1e300, true, null, 'ü🎉'], '': {} }],
    ['null', null],
    ['a list of 100 kB', Array.from({ length: 10_000 }, (_, i) => `item ${i}`)],
    ['a text of 1 MiB', 'x'.repeat(1_048_574)],
  ])('stores %s as it is', async (_, note) => {
    const claim = await claimed(idempotencyWith({ rows: KEEPING }), 'k');
    expect(await claim.dispatch(note)).toEqual({ kind: 'ok' });
    expect(await claim.complete({ status: 'ok', value: 'v'.repeat(20_000) }, { note })).toEqual({ kind: 'kept' });
    expect(await notes()).toEqual([note, note]);
    expect(await all(`select length(value) as length from headgate.claims`)).toEqual([{ length: 20_002 }]);
  });

  it('are refused without rows for their step, also by the store itself', async () => {
    const store = storeWith({ rows: undefined });
    await expect(store.dispatch(ID, HELD)).rejects.toMatchObject({ code: 'invalid_option', option: 'note' });
    const large = { status: 'ok', value: 'v'.repeat(20_000) };
    await expect(store.complete(ID, { ...COMPLETE, result: large })).rejects.toMatchObject({ option: 'note' });
    const claim = await claimed(idempotencyWith({ rows: { complete: ROWS.complete } }), 'k');
    await expect(claim.dispatch({ id: 'k' })).rejects.toThrow(/no rows.dispatch/);
    expect(await claim.abandon()).toEqual({ kind: 'released' });
  });
});

describe('statements that fail', () => {
  const failing = (text: string, more: PostgresClaimStoreOptions = {}) =>
    idempotencyWith({ rows: { dispatch: { mail: text }, complete: { mail: text } }, ...more });

  it.each([
    ['a wrong note', `insert into mails.emails select note->>'id', null from step`, '23502'],
    ['a division by zero', `select 1 / (note->>'zero')::int from step`, '22012'],
    ['a missing table', 'insert into mails.missing select 1 from step', '42P01'],
    ['a missing function', 'select mails.missing(note) from step', '42883'],
  ])('%s: nothing is dispatched, other keys work, and the circuit breaker stays closed', async (_, text, sqlState) => {
    const store = storeWith({ rows: { dispatch: { mail: text } } });
    const idempotency = createIdempotency({ store, logger: false });
    for (let i = 0; i < 7; i++) {
      const [bad, good] = await Promise.all([claimed(idempotency, `bad ${i}`), claimed(idempotency, `good ${i}`)]);
      const [failed, ok] = await Promise.all([bad.dispatch({ id: 'x', zero: 0 }), good.dispatch()]);
      expect(failed).toMatchObject({ kind: 'unavailable', error: { code: 'rows_failed', sqlState } });
      expect(ok).toEqual({ kind: 'ok' });
      expect(await good.complete(RESULT)).toEqual({ kind: 'kept' });
    }
    expect(store.stats().breaker).toBe('closed');
    await idempotency.idle();
    expect((await all(`select state, dispatched from headgate.claims where state <> 'completed'`)).length).toBe(7);
    expect(await all('select from headgate.claims where dispatched')).toEqual([]);
    await idempotency.close();
  });

  it('ready() plans the statements, says which is wrong, and executes none', async () => {
    const wrong = storeWith({ rows: { ...ROWS, complete: { mail: 'update mails.emails set nothing = 1 from step' } } });
    await expect(wrong.ready()).rejects.toMatchObject({
      code: 'store_setup',
      message: expect.stringMatching(/^rows.complete: column "nothing" .* does not exist/),
    });
    expect(wrong.stats().breaker).toBe('closed');
    await storeWith({ rows: { complete: { wipe: 'delete from mails.emails' } } }).ready();
    await pool.query(`insert into mails.emails values ('stays', 'sent')`);
    await storeWith({
      rows: { complete: { wipe: 'delete from mails.emails where not exists (select from step)' } },
    }).ready();
    expect(await states()).toEqual([{ id: 'stays', state: 'sent' }]);
  });

  it('an outcome is never stored without its rows: it is repeated until the table is repaired', async () => {
    const errors: unknown[] = [];
    const idempotency = idempotencyWith({ onError: (error) => errors.push(error) });
    const claim = await claimed(idempotency, 'k');
    await claim.dispatch({ id: 'k' });
    await pool.query('alter table mails.emails add check (state <> $$sent$$) not valid');
    const completion = await claim.complete(RESULT, { note: { id: 'k', state: 'sent' } });
    expect(completion).toMatchObject({
      kind: 'pending',
      answer: 'own',
      error: { code: 'rows_failed', sqlState: '23514' },
    });
    expect(errors[0]).toMatchObject({ code: 'rows_failed' });
    expect(await idempotency.inspect(ID)).toMatchObject({ state: 'in_progress', dispatched: true });
    await pool.query('alter table mails.emails drop constraint emails_state_check');
    await idempotency.idle();
    expect(await idempotency.inspect(ID)).toMatchObject({ state: 'completed' });
    expect(await states()).toEqual([{ id: 'k', state: 'sent' }]);
    expect(await all('select email from mails.outbox')).toEqual([{ email: 'k' }]);
  });

  it('the error of a deferred constraint is the error of its row', async () => {
    await pool.query(`create table mails.jobs (email text references mails.emails (id) deferrable initially deferred)`);
    const idempotency = failing(`insert into mails.jobs select note->>'id' from step`);
    const claim = await claimed(idempotency, 'k');
    expect(await claim.dispatch({ id: 'missing' })).toMatchObject({
      kind: 'unavailable',
      error: { code: 'rows_failed', sqlState: '23503', constraint: 'jobs_email_fkey' },
    });
    await pool.query('drop table mails.jobs');
  });

  it('a conflict with another transaction and a time limit are an outage of that statement', async () => {
    await pool.query(`create function mails.conflict() returns int language plpgsql as
      $$ begin raise exception 'later' using errcode = 'serialization_failure'; end $$`);
    const conflict = await (await claimed(failing('select mails.conflict() from step'), 'k')).dispatch(1);
    expect(conflict).toMatchObject({ kind: 'unavailable', error: { code: 'store_unavailable', sent: false } });
    await pool.query('drop function mails.conflict');
    const limited = newPool({
      connectionString: `${url}${url.includes('?') ? '&' : '?'}options=-c%20statement_timeout%3D100`,
    });
    const rows = { dispatch: { nap: 'select pg_sleep(5) from step' } };
    const store = createPostgresClaimStore(limited, { rows, deadlineMs: 20_000, logger: false });
    const idempotency = createIdempotency({ store, logger: false });
    const slow = await claimed(idempotency, 'slow');
    expect(await slow.dispatch(1)).toMatchObject({
      kind: 'unavailable',
      error: { code: 'store_unavailable', sent: false },
    });
    await idempotency.close();
    expect(await all(`select from headgate.claims where dispatched`)).toEqual([]);
  });
});

it('names without a schema are those of the connection, and a table called like a statement is another', async () => {
  await pool.query('create table mails.step (id int); create table mails.mail (id text)');
  const searching = newPool({
    connectionString: `${url}${url.includes('?') ? '&' : '?'}options=-c%20search_path%3Dmails`,
  });
  const rows = {
    dispatch: {
      mail: `insert into mail select note->>'id' from step returning id`,
      emails: `insert into emails select id, 'queued' from mail`,
    },
  };
  const idempotency = createIdempotency({ store: createPostgresClaimStore(searching, { rows, deadlineMs: 20_000 }) });
  const claim = await claimed(idempotency, 'k');
  expect(await claim.dispatch({ id: 'x' })).toEqual({ kind: 'ok' });
  await claim.complete(RESULT);
  await idempotency.close();
  expect(await states()).toEqual([{ id: 'x', state: 'queued' }]);
  expect(await all('select id from mails.mail')).toEqual([{ id: 'x' }]);
});

it('rows without a note cost nothing: the statement is the same', async () => {
  const texts: string[] = [];
  const watched = newPool({ connectionString: url });
  watched.on('connect', (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    const watch = (...args: readonly { text: string }[]) => {
      texts.push(String(args[0]?.text));
      return query(...args);
    };
    Object.assign(client, { query: watch });
  });
  const store = createPostgresClaimStore(watched, { rows: ROWS, deadlineMs: 20_000 });
  const claim = await claimed(createIdempotency({ store }), 'k');
  await claim.dispatch();
  await claim.complete(RESULT);
  expect(texts.filter((text) => text.includes('.claims_1('))).toHaveLength(3);
  expect(texts.filter((text) => text.includes('.claims_2('))).toEqual([]);
});

describe('the option', () => {
  it.each<[string, unknown, RegExp]>([
    ['another step', { begin: { a: 'select 1' } }, /rows.*begin/],
    ['no statements', { dispatch: {} }, /^rows.dispatch: must be an object of statements/],
    ['a list', { dispatch: ['select 1'] }, /^rows.dispatch: must be an object/],
    ['a text', { dispatch: 'select 1' }, /^rows.dispatch: must be an object/],
    ['the name step', { dispatch: { step: 'select 1' } }, /^rows.dispatch.step: must be named/],
    ['another name', { dispatch: { 'a b': 'select 1' } }, /^rows.dispatch.a b: must be named/],
    ['no text', { dispatch: { a: 1 } }, /^rows.dispatch.a: must be one statement/],
    ['another statement', { dispatch: { a: 'drop table x' } }, /^rows.dispatch.a: must be one statement/],
    ['a with', { dispatch: { a: 'with x as (select 1) select 1' } }, /^rows.dispatch.a: must be one statement/],
    ['a semicolon', { dispatch: { a: 'select 1; ' } }, /^rows.dispatch.a: must not end with a semicolon/],
    ['an unread select', { dispatch: { a: 'select 1', b: 'select 2' } }, /^rows.dispatch.a: is a select that no later/],
  ])('refuses %s', (_, rows, message) => {
    expect(() => createPostgresClaimStore(pool, { rows: rows as ClaimRows })).toThrow(message);
  });
});
