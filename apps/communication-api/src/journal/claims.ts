import { channel } from 'node:diagnostics_channel';
import { createIdempotency, type Idempotency } from 'headgate';
import type { IdempotencyEvent } from 'headgate/idempotency';
import { createPostgresClaimStore, type PostgresClaimStore } from 'headgate/postgres';
import type { Logger } from 'pino';
import { clientOf, type Database } from '../db/database.ts';
import type { Clock } from '../domain/clock.ts';

/** A duplicate waits for its original about as long as a provider may take in practice. */
const WAIT_MS = 20_000;
/** How long a retry waits for a process that died. */
const LEASE_MS = 10_000;
const MAX_RUN_MS = 600_000;
/** The embedded database does one statement after the other, so a statement may wait for many others. */
const DEADLINE_MS = 5_000;
/** An idempotency key is known for 24 hours. */
export const KEY_RETENTION_MS = 86_400_000;

/** The steps of a send, as they are published on the diagnostics channel `communication-api:send`. */
export type SendStep = 'asked' | 'taken' | 'drafted' | 'dispatched' | 'sent' | 'settled';

const steps = channel('communication-api:send');

export const publishStep = (step: SendStep): void => {
  if (steps.hasSubscribers) steps.publish({ step });
};

/** The name of the claim of a send without an idempotency key. No idempotency key contains a line feed. */
export const claimKeyOf = (idempotencyKey: string | null, id: string): string => idempotencyKey ?? `\n${id}`;

/**
 * The claims of sends. Each step of a claim writes the row of its email in the same statement: see the functions of the
 * migration `0013-claims`.
 * @param clock of tests; undefined: the clock of the database
 */
export const createClaimStore = (
  db: Database,
  log: Pick<Logger, 'warn'>,
  clock: Clock | undefined,
): PostgresClaimStore => {
  const ended = { email: 'select send_ended_1(step.scope, step.note) from step' };
  return createPostgresClaimStore(clientOf(db), {
    deadlineMs: DEADLINE_MS,
    rows: {
      dispatch: { email: 'select send_begun_1(step.scope, step.note) from step' },
      complete: ended,
      abandon: ended,
    },
    logger: (message, err) => log.warn({ err }, message),
    ...(clock && { clock: { now: clock } }),
  });
};

export const createServiceIdempotency = (
  store: PostgresClaimStore,
  onEvent: (event: IdempotencyEvent) => void,
): Idempotency =>
  createIdempotency({
    store,
    onEvent: (event) => {
      if (event.type === 'completed') publishStep('settled');
      onEvent(event);
    },
    onOrphan: 'reconcile',
    leaseMs: LEASE_MS,
    waitMs: WAIT_MS,
    maxRunMs: MAX_RUN_MS,
    retentionMs: KEY_RETENTION_MS,
  });
