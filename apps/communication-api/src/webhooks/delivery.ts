import type { Logger } from 'pino';
import { Webhook } from 'standardwebhooks';
import type { Database } from '../db/database.ts';
import type { Clock } from '../domain/clock.ts';
import type { Job, JobOutcome } from '../jobs/job.ts';
import type { JobHandler } from '../jobs/queue.ts';
import type { Egress } from '../security/egress.ts';
import { EgressError, type EgressFailure, readBounded } from '../security/net.ts';
import type { Conversations } from './conversations.ts';
import type { DisabledReason, Endpoint, Endpoints } from './endpoints.ts';
import type { Event } from './event.ts';
import { findEvent } from './event.ts';
import type { Events } from './events.ts';

/** Why no answer came: the connection was not made, or it ended before the answer. */
export const CONVERSATION_ERRORS = ['forbidden', 'unresolved', 'refused', 'timeout', 'tls', 'connection_lost'] as const;

export type ConversationError = (typeof CONVERSATION_ERRORS)[number];

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** The waits after failed attempts; none follows the last attempt. Each wait is up to 10 % shorter or longer. */
const WAITS_MS = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR)];
const JITTER = 0.1;
/** How long an endpoint may take to answer. */
const TIMEOUT_MS = 15 * SECOND;
/** How long the statements of an attempt may take, besides the request. */
const STATEMENTS_MS = 15 * SECOND;
/** An endpoint that fails for so long is disabled. */
const PATIENCE_MS = 5 * 24 * HOUR;
/** How much of an answer is stored, in bytes. */
const MAX_RESPONSE = 1_024;
/** Requests to one endpoint that run at once, per process. */
const PER_ENDPOINT = 5;
/**
 * Requests that run at once, per process. Six applications can have 49 endpoints each that do not answer, and the
 * requests to every other endpoint begin at once.
 */
const AT_ONCE = 400;
const GONE = 410;

interface DeliveryParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly egress: Egress;
  readonly endpoints: Endpoints;
  readonly events: Events;
  readonly conversations: Conversations;
  /** How long an endpoint may take to answer. Default: 15 s. */
  readonly timeoutMs?: number | undefined;
  /** Called after each request. @param lagMs from the event to its first request; undefined: this was not the first */
  onRequest?(outcome: 'delivered' | 'failed', lagMs: number | undefined): void;
}

/** The result of a request to an endpoint. */
type Answer =
  | { readonly status: number; readonly response: string; readonly error: null }
  | { readonly status: null; readonly response: null; readonly error: ConversationError };

/** Delivers events to endpoints, as Standard Webhooks says. Each job is one event for one endpoint. */
export class Delivery implements JobHandler {
  readonly perLane = PER_ENDPOINT;
  readonly atOnce = AT_ONCE;
  readonly #timeoutMs: number;

  constructor(private readonly parts: DeliveryParts) {
    this.#timeoutMs = parts.timeoutMs ?? TIMEOUT_MS;
  }

  get deadlineMs(): number {
    return this.#timeoutMs + STATEMENTS_MS;
  }

  async run({ applicationId, lane, subject, attempt, addedAt }: Job, signal: AbortSignal): Promise<JobOutcome> {
    const { db, clock, endpoints, conversations } = this.parts;
    const endpoint = await endpoints.find(applicationId, lane);
    const event = await findEvent(applicationId, subject, db);
    // The endpoint was deleted or disabled since the event was added.
    if (endpoint === undefined || !endpoint.enabled || event === undefined) return 'done';
    const startedAt = clock();
    const started = performance.now();
    const answer = await this.#request(endpoint, event, signal);
    const isDelivered = answer.status !== null && answer.status >= 200 && answer.status < 300;
    const outcome = isDelivered ? 'delivered' : 'failed';
    this.parts.onRequest?.(outcome, attempt === 1 ? Math.max(0, startedAt - addedAt.getTime()) : undefined);
    const waitMs = isDelivered || answer.status === GONE ? undefined : WAITS_MS[attempt - 1];
    const retryInMs = waitMs === undefined ? undefined : Math.round(waitMs * (1 + JITTER * (2 * Math.random() - 1)));
    await conversations.add(applicationId, {
      endpoint_id: endpoint.id,
      event_id: event.id,
      event_type: event.type,
      attempt,
      outcome,
      ...answer,
      duration_ms: Math.round(performance.now() - started),
      next_attempt_at: retryInMs === undefined ? null : new Date(clock() + retryInMs),
      created_at: new Date(startedAt),
    });
    if (!isDelivered) return (await this.#failed(endpoint, answer)) || retryInMs === undefined ? 'done' : { retryInMs };
    if (endpoint.failing_since !== null) await endpoints.recovered(applicationId, endpoint.id);
    return 'done';
  }

  /** @returns whether the endpoint is disabled now */
  async #failed({ id, application_id: applicationId, failing_since }: Endpoint, answer: Answer): Promise<boolean> {
    const { endpoints, clock } = this.parts;
    if (answer.status === GONE) return this.#disable(applicationId, id, 'gone');
    const since = failing_since ?? (await endpoints.failed(applicationId, id));
    if (since === undefined || clock() - since.getTime() < PATIENCE_MS) return false;
    return this.#disable(applicationId, id, 'failing');
  }

  async #disable(applicationId: string, id: string, reason: DisabledReason): Promise<true> {
    const { db, endpoints, events, log } = this.parts;
    await db.transaction().execute(async (trx) => {
      if (!(await endpoints.disable(applicationId, id, reason, trx))) return;
      log.warn({ application: applicationId, endpoint: id, reason }, 'a webhook endpoint was disabled');
      const data = { endpoint_id: id, reason };
      await events.add(applicationId, { type: 'webhook.endpoint_disabled', accountId: null, data }, trx);
    });
    return true;
  }

  /** @throws the reason of `signal`, if that ended the request */
  async #request(endpoint: Endpoint, event: Event, signal: AbortSignal): Promise<Answer> {
    const { clock, egress, endpoints } = this.parts;
    const body = bodyOf(event);
    const at = new Date(clock());
    const signatures = endpoints.secrets.of(endpoint).map((secret) => new Webhook(secret).sign(event.id, at, body));
    const timeout = AbortSignal.timeout(this.#timeoutMs);
    let response: Response;
    try {
      response = await egress.through(undefined).fetch(endpoint.url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'user-agent': 'communication-api',
          'webhook-id': event.id,
          'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
          'webhook-signature': signatures.join(' '),
        },
        body,
        signal: AbortSignal.any([signal, timeout]),
      });
    } catch (error) {
      signal.throwIfAborted();
      return { status: null, response: null, error: timeout.aborted ? 'timeout' : errorOf(error) };
    }
    return { status: response.status, response: await beginningOf(response), error: null };
  }
}

/** The body of the request: the same bytes at each attempt, so that receivers can compare them. */
export const bodyOf = ({ id, type, account_id, data, created_at }: Event): string =>
  JSON.stringify({ object: 'Event', id, type, timestamp: created_at.toISOString(), account_id, data });

function errorOf(error: unknown): ConversationError {
  const failure: EgressFailure | undefined = error instanceof EgressError ? error.failure : undefined;
  // No proxy is used, so none refuses a password.
  return failure === undefined || failure === 'proxy_credentials' ? 'connection_lost' : failure;
}

/** The first kilobyte of an answer; empty if it breaks off. The status arrived, so that changes nothing else. */
async function beginningOf(response: Response): Promise<string> {
  const read = await readBounded(response, MAX_RESPONSE).catch(() => undefined);
  // PostgreSQL does not store NUL.
  return new TextDecoder().decode(read?.bytes).replaceAll('\0', '\ufffd');
}
