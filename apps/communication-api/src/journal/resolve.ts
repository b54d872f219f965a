import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Idempotency } from 'headgate';
import { claimKeyOf } from './claims.ts';
import type { SendError } from './send-notes.ts';
import { storedError, storedSent } from './send-outcome.ts';
import type { Send } from './send-records.ts';
import type { Sends } from './sends.ts';

/** The outcome that a person found out in the mailbox. */
export type FoundOutcome = 'sent' | 'not_sent';

/** How often, and after which time, it is tried again while a process has the claim. */
const [LOOKS, LOOK_MS] = [5, 200];

/** The error that a retry with the key of such an email gets. */
const NOT_SENT: SendError = {
  status: 409,
  type: 'errors/operation_canceled',
  detail: 'A person checked the mailbox: the email was not sent. Use a new Idempotency-Key to send it.',
};

/**
 * Stores the outcome that a person found out for an email whose outcome is unknown. Returns false if the outcome is known
 * by now, or if a process is asking the provider for it: then the person must look again.
 * @param audit the entry of the audit log, which is written in the same step
 */
export async function resolveEmail(
  { idempotency, sends }: { readonly idempotency: Idempotency; readonly sends: Sends },
  send: Send,
  outcome: FoundOutcome,
  audit: object,
): Promise<boolean> {
  if (send.state !== 'unknown') return false;
  const { application_id: scope, id, fingerprint, provider_id: providerId, provider_immutable_id: immutableId } = send;
  const claim = { scope, key: claimKeyOf(send.idempotency_key, id) };
  const found =
    outcome === 'sent'
      ? { result: storedSent({ id, providerId, immutableId }), note: sends.notes.sent(send, undefined, { audit }) }
      : { result: storedError(NOT_SENT, randomUUID()), note: sends.notes.failed(send, NOT_SENT, { audit }) };
  const reconcile = () => idempotency.reconcileWith(claim, () => ({ done: true, ...found }));
  let reconciled = await reconcile();
  // Another person may store an outcome at this moment.
  for (let look = 0; look < LOOKS && (reconciled === 'in_progress' || reconciled === 'changed'); look++) {
    await pause(LOOK_MS);
    reconciled = await reconcile();
  }
  if (reconciled !== 'absent') return reconciled === 'completed';
  // The store forgot the claim, because its application had no room for a new key.
  const opened = await idempotency.open({ ...claim, fingerprint, dispatch: 'explicit', onOrphan: 'reject', waitMs: 0 });
  if (opened.kind !== 'claimed') return false;
  return (await opened.claim.complete(found.result, { note: found.note })).kind === 'kept';
}
