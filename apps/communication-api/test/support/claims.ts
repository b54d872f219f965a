import { randomUUID } from 'node:crypto';
import { createIdempotency, type Idempotency } from 'headgate';
import type { KeptResult } from 'headgate/idempotency';
import type { PostgresClaimStore } from 'headgate/postgres';
import type { Database } from '../../src/db/database.ts';
import type { Clock } from '../../src/domain/clock.ts';
import { newId } from '../../src/domain/ids.ts';
import { ServiceError } from '../../src/domain/service-error.ts';
import { claimKeyOf, createClaimStore, createServiceIdempotency } from '../../src/journal/claims.ts';
import { isVerdict, type sentBody, storedError, storedSent } from '../../src/journal/send-outcome.ts';
import type { Sender, SendRequest } from '../../src/journal/sender.ts';
import type { Sends } from '../../src/journal/sends.ts';

const SILENT = { warn: () => undefined };

export const claimStoreOn = (db: Database, clock?: Clock): PostgresClaimStore => createClaimStore(db, SILENT, clock);

/** The claims of a process of the service. */
export const claimsOn = (db: Database, clock?: Clock): Idempotency =>
  createServiceIdempotency(claimStoreOn(db, clock), () => undefined);

/** The claims of a process that others take for dead soon. */
export const shortClaims = (store: PostgresClaimStore, leaseMs: number): Idempotency =>
  createIdempotency({
    store,
    ...{ onOrphan: 'reconcile', leaseMs, waitMs: 20 * leaseMs, logger: false },
  });

export interface ClaimWorld {
  readonly idempotency: Idempotency;
  readonly sender: Sender;
  readonly sends: Sends;
}

export interface Sent {
  readonly id: string;
  readonly providerId: string | null;
  readonly wasSentBefore: boolean;
}

/** The body of a stored error. */
interface Problem {
  readonly status: 409;
  readonly type: 'errors/conflict';
  readonly detail: string;
}

const conflict = (detail: string): ServiceError => new ServiceError(409, 'errors/conflict', detail);

/**
 * Sends an email under a claim, as the gate and its handler do, or returns the outcome of an earlier attempt.
 * @throws the error that the client would get
 */
export async function sendUnderClaim(world: ClaimWorld, request: SendRequest): Promise<Sent> {
  const { idempotency, sender, sends } = world;
  const { applicationId: scope, idempotencyKey, fingerprint } = request.send;
  const id = newId('eml', Date.now());
  let unknown: unknown;
  const opened = await idempotency.open({
    ...{ scope, key: claimKeyOf(idempotencyKey, id), fingerprint, dispatch: 'explicit' },
    reconcile: async ({ key }) => {
      const row = await sends.records.byClaim(scope, key);
      if (row === undefined) return { done: false };
      return sender.resume(row, request).catch((error: unknown) => {
        unknown = error;
        throw error;
      });
    },
  });
  if (opened.kind === 'replay') return { ...sentIn(opened.result), wasSentBefore: true };
  if (opened.kind !== 'claimed') throw unknown ?? ('error' in opened ? opened.error : conflict(opened.kind));
  const { claim } = opened;
  const afterwards: (() => Promise<void>)[] = [];
  let isLeft = false;
  try {
    const result = await sender.send(request, id, {
      dispatch: async (note) => {
        const { kind } = await claim.dispatch(note);
        if (kind !== 'ok') throw conflict(`not dispatched: ${kind}`);
      },
      noteOutcome: (note) => claim.noteOutcome(note),
      leave: () => {
        isLeft = true;
        return claim.leave();
      },
      afterwards: (work) => void afterwards.push(work),
    });
    const completion = await claim.complete(storedSent(result));
    if (completion.kind === 'pending') throw completion.error;
    return { ...result, wasSentBefore: false };
  } catch (error) {
    if (!isLeft && isVerdict(error)) {
      const { status, type, message: detail } = error as ServiceError;
      await claim.complete(storedError({ status, type, detail }, randomUUID()));
    } else if (!isLeft) await claim.abandon();
    throw error;
  } finally {
    for (const work of afterwards) await work();
  }
}

function sentIn({ value = '' }: KeptResult): { readonly id: string; readonly providerId: string | null } {
  const body: ReturnType<typeof sentBody> | Problem = JSON.parse(value.slice(value.indexOf('\n') + 2));
  if ('status' in body) throw new ServiceError(body.status, body.type, body.detail);
  return { id: body.tracking_id, providerId: body.provider_id };
}
