import { randomUUID } from 'node:crypto';
import type { Idempotency } from 'headgate';
import { newId } from '../../src/domain/ids.ts';
import { claimKeyOf } from '../../src/journal/claims.ts';
import type { Send } from '../../src/journal/send-records.ts';
import type { Sends } from '../../src/journal/sends.ts';

interface Parts {
  readonly sends: Sends;
  readonly idempotency: Idempotency;
}

/** The claim of an email that is dispatched: its process works on it, or dies if `leave` of the claim is called. */
export async function dispatchedEmail(
  { sends, idempotency }: Parts,
  send: { readonly applicationId: string; readonly accountId: string; readonly idempotencyKey?: string | null },
  at = Date.now(),
) {
  const { applicationId: scope, accountId, idempotencyKey = null } = send;
  const id = newId('eml', at);
  const content = { to: ['ann@example.com'], subject: 'Hello', references: [] };
  const more = { fingerprint: 'f', label: null, messageId: `<${randomUUID()}@example.com>`, content };
  const key = claimKeyOf(idempotencyKey, id);
  const opened = await idempotency.open({ scope, key, fingerprint: 'f', dispatch: 'explicit', onOrphan: 'reject' });
  if (opened.kind !== 'claimed') throw new Error(`The claim was not made: ${opened.kind}.`);
  const note = sends.notes.begun({ applicationId: scope, accountId, idempotencyKey, ...more }, id, null);
  const { kind } = await opened.claim.dispatch(note);
  if (kind !== 'ok') throw new Error(`The claim was not dispatched: ${kind}.`);
  return { id, claim: opened.claim, row: (await sends.records.byId(scope, id)) as Send };
}

/**
 * Adds a row of the journal whose outcome is unknown: its process died while the provider was asked. Returns its id.
 */
export async function unknownEmail(
  { rooms }: { readonly rooms: Parts },
  applicationId: string,
  accountId: string,
  idempotencyKey: string | null = null,
): Promise<string> {
  const { id, claim, row } = await dispatchedEmail(rooms, { applicationId, accountId, idempotencyKey });
  await claim.leave();
  await rooms.sends.unknown(row);
  return id;
}
