/** Rows of the user that are written with the steps of a claim, for every client. */
import { describe, expect, it } from 'vitest';
import { createIdempotency } from '../../../src/idempotency/idempotency.ts';
import type { ClaimRows } from '../../../src/stores/postgres/claim-rows.ts';
import { createPostgresClaimStore } from '../../../src/stores/postgres/claims.ts';
import { databaseOf, type PostgresClient } from '../../../src/stores/postgres/client.ts';
import type { Row } from '../../../src/stores/postgres/database.ts';
import { CLIENTS, migrated } from '../../support/postgres.ts';

const RESULT = { status: 'ok', value: '1' };
const REQUEST = { fingerprint: 'f', dispatch: 'explicit' } as const;
const ROWS = {
  dispatch: { mail: `insert into rows_test.emails (id, state) select note->>'id', 'dispatched' from step` },
  complete: {
    mail: `update rows_test.emails as e set state = note->>'state' from step where e.id = note->>'id' returning e.id`,
    event: `insert into rows_test.outbox (email, scope, key, at)
      select mail.id, step.scope, step.key, step.now from mail join step on note->>'id' = mail.id`,
  },
  abandon: { mail: `delete from rows_test.emails as e using step where e.id = note->>'id'` },
} satisfies ClaimRows;

async function prepared(client: PostgresClient): Promise<(text: string) => Promise<readonly Row[]>> {
  const database = databaseOf('client', client);
  await database.query(
    `drop schema if exists rows_test cascade; create schema rows_test;
     create table rows_test.emails (id text primary key, state text not null);
     create table rows_test.outbox (email text, scope text, key text, at bigint)`,
    [],
  );
  await migrated(client, 'rows_claims');
  return (text) => database.query(text, []);
}

describe.each(Object.entries(CLIENTS))('%s', (_, create) => {
  it('writes rows with the steps that carry a note', async () => {
    const client = create();
    const query = await prepared(client);
    const store = createPostgresClaimStore(client, { schema: 'rows_claims', rows: ROWS, deadlineMs: 60_000 });
    await store.ready();
    const idempotency = createIdempotency({ store });
    const claimOf = async (key: string) => {
      const opened = await idempotency.open({ scope: 'app', key, ...REQUEST });
      if (opened.kind !== 'claimed') throw new Error(opened.kind);
      return opened.claim;
    };
    const [one, two, three] = await Promise.all(['a', 'b', 'c'].map(claimOf));
    expect(
      await Promise.all([one?.dispatch({ id: 'a' }), two?.dispatch({ id: 'b' }), three?.dispatch({ id: 'c' })]),
    ).toEqual(Array(3).fill({ kind: 'ok' }));
    expect(await query('select id, state from rows_test.emails order by id')).toEqual(
      ['a', 'b', 'c'].map((id) => ({ id, state: 'dispatched' })),
    );
    two?.noteOutcome({ id: 'b', state: 'failed' });
    expect(
      await Promise.all([
        one?.complete(RESULT, { note: { id: 'a', state: 'sent' } }),
        two?.complete(RESULT),
        three?.abandon(),
      ]),
    ).toEqual([{ kind: 'kept' }, { kind: 'kept' }, { kind: 'released' }]);
    expect(await query('select id, state from rows_test.emails order by id')).toEqual([
      { id: 'a', state: 'sent' },
      { id: 'b', state: 'failed' },
    ]);
    expect(await query('select email, scope, key from rows_test.outbox order by email')).toEqual([
      { email: 'a', scope: 'app', key: 'a' },
      { email: 'b', scope: 'app', key: 'b' },
    ]);
    await idempotency.close();
  });
});
