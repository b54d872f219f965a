import { expect, it } from 'vitest';
import type { ClaimId } from '../../src/core/ports.ts';
import type { Claim } from '../../src/idempotency/claim.ts';
import { createIdempotency, type Idempotency } from '../../src/idempotency/idempotency.ts';
import type { ClaimRows } from '../../src/stores/postgres/claim-rows.ts';
import { createPostgresClaimStore } from '../../src/stores/postgres/claims.ts';
import { databaseOf, type PostgresClient } from '../../src/stores/postgres/client.ts';
import type { Row } from '../../src/stores/postgres/database.ts';
import { migrated } from './postgres.ts';

export const RESULT = { status: 'ok', value: '1' };

/** A table of emails and an outbox, in the schema `mails`. */
export const ROWS = {
  dispatch: { mail: `insert into mails.emails (id, state) select note->>'id', 'dispatched' from step` },
  complete: {
    mail: `update mails.emails as e set state = note->>'state' from step where e.id = note->>'id' returning e.id`,
    event: `insert into mails.outbox (email, scope, key, at)
      select mail.id, step.scope, step.key, step.now from mail join step on note->>'id' = mail.id`,
  },
  abandon: { mail: `delete from mails.emails as e using step where e.id = note->>'id'` },
} satisfies ClaimRows;

/** Creates the tables, empty. Returns what runs a statement. */
export async function withMails(client: PostgresClient, schema: string) {
  const database = databaseOf('client', client);
  await database.query(
    `drop schema if exists mails cascade; create schema mails;
     create table mails.emails (id text primary key, state text not null);
     create table mails.outbox (email text, scope text, key text, at bigint)`,
    [],
  );
  await migrated(client, schema);
  return (text: string): Promise<readonly Row[]> => database.query(text, []);
}

/** Claims a key, of which the owner says when it is dispatched. */
export async function claimed(idempotency: Idempotency, id: string | ClaimId): Promise<Claim> {
  const { scope, key } = typeof id === 'string' ? { scope: 'app', key: id } : id;
  const opened = await idempotency.open({ scope, key, fingerprint: 'f', dispatch: 'explicit', waitMs: 0 });
  if (opened.kind !== 'claimed') throw new Error(opened.kind === 'refused' ? opened.reason : opened.kind);
  return opened.claim;
}

/** What every client must do with the rows of a claim. */
export function claimRowsSuite(client: PostgresClient, schema: string): void {
  it('writes rows with the steps that carry a note, and a wrong row fails its owner only', async () => {
    const query = await withMails(client, schema);
    const store = createPostgresClaimStore(client, { schema, rows: ROWS, deadlineMs: 60_000, logger: false });
    await store.ready();
    const idempotency = createIdempotency({ store, logger: false });
    const emails = async () =>
      (await query('select id, state from mails.emails order by id')).map((row) => ({ ...row }));
    const claims = (await Promise.all(['a', 'b', 'c', 'd', 'e'].map((key) => claimed(idempotency, key)))) as [
      Claim,
      Claim,
      Claim,
      Claim,
      Claim,
    ];
    const [a, b, c, d, e] = claims;
    await query(`insert into mails.emails values ('d', 'another')`);

    // In one statement: the row of d exists.
    const dispatched = await Promise.all([
      ...claims.slice(0, 4).map((claim) => claim.dispatch({ id: claim.key })),
      e.dispatch(),
    ]);
    const failed = dispatched.splice(3, 1)[0];
    expect(dispatched).toEqual(Array(4).fill({ kind: 'ok' }));
    expect(failed).toMatchObject({
      kind: 'unavailable',
      error: {
        code: 'rows_failed',
        sqlState: '23505',
        constraint: 'emails_pkey',
        message: expect.stringMatching(/^rows.dispatch: /),
      },
    });
    expect(d.dispatched).toBe(false);
    expect(await emails()).toEqual([
      { id: 'a', state: 'dispatched' },
      { id: 'b', state: 'dispatched' },
      { id: 'c', state: 'dispatched' },
      { id: 'd', state: 'another' },
    ]);

    // Of three steps in one statement, one without a note.
    b.noteOutcome({ id: 'b', state: 'failed' });
    expect(
      await Promise.all([
        a.complete(RESULT, { note: { id: 'a', state: 'sent' } }),
        b.complete(RESULT),
        c.abandon(),
        e.complete(RESULT),
      ]),
    ).toEqual([{ kind: 'kept' }, { kind: 'kept' }, { kind: 'released' }, { kind: 'kept' }]);
    expect(await emails()).toEqual([
      { id: 'a', state: 'sent' },
      { id: 'b', state: 'failed' },
      { id: 'd', state: 'another' },
    ]);
    const outbox = await query('select email, scope, key, at from mails.outbox order by email');
    expect(
      outbox.map(({ at, ...row }) => ({ ...row, isRecent: Math.abs(Date.now() - Number(at)) < 3_600_000 })),
    ).toEqual([
      { email: 'a', scope: 'app', key: 'a', isRecent: true },
      { email: 'b', scope: 'app', key: 'b', isRecent: true },
    ]);
    await idempotency.close();
  });
}
