import { appendFileSync, readFileSync } from 'node:fs';
import type pg from 'pg';
import { createIdempotency, type Idempotency } from '../../src/idempotency/idempotency.ts';
import type { Reconcile } from '../../src/idempotency/reconcile.ts';
import type { ClaimRows } from '../../src/stores/postgres/claim-rows.ts';
import { createPostgresClaimStore } from '../../src/stores/postgres/claims.ts';

/** A retry that executes after the death of another owner dispatches again. */
const MAIL_ROWS = {
  dispatch: {
    mail: `insert into mails as m select note->>'id', 'sending', 1 from step
      on conflict (id) do update set dispatches = m.dispatches + 1`,
  },
  complete: {
    mail: `update mails set state = 'sent' from step where id = note->>'id' returning id`,
    event: 'insert into events select id from mail',
  },
  abandon: { mail: `delete from mails using step where id = note->>'id'` },
} satisfies ClaimRows;

/**
 * Asks the provider. Between the answer to a dispatch and the mail, a process awaits nothing.
 * @param provider its file: a line per mail
 */
const reconcileWith =
  (provider: string): Reconcile<string> =>
  ({ key }) => {
    const note = { id: key };
    const isSent = readFileSync(provider, 'utf8').split('\n').includes(key);
    return isSent ? { done: true, result: key, note } : { done: false, note };
  };

export function mailer(pool: pg.Pool, provider: string, leaseMs = 1_000): Idempotency {
  return createIdempotency({
    store: createPostgresClaimStore(pool, { rows: MAIL_ROWS, deadlineMs: 500, logger: false }),
    leaseMs,
    waitMs: 200,
    onOrphan: 'reconcile',
    reconcile: reconcileWith(provider) as Reconcile<unknown>,
    logger: false,
  });
}

export async function send(idempotency: Idempotency, provider: string, key: string): Promise<string> {
  const operation = async ({ dispatch, noteOutcome }: Parameters<Parameters<Idempotency['run']>[2]>[0]) => {
    await dispatch({ id: key });
    appendFileSync(provider, `${key}\n`);
    noteOutcome({ id: key });
    return key;
  };
  const options = { dispatch: 'explicit' } as const;
  return idempotency.run({ scope: 'app', key }, key, operation, options).then(
    ({ kind }) => kind,
    () => 'thrown',
  );
}
