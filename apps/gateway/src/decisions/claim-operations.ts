import { isHeadgateError } from 'headgate';
import { storedResponse } from 'headgate/http';
import type { ClaimSettings, IdempotencyEvent } from 'headgate/idempotency';
import { decodeResponse, digestText } from 'headgate/internal';
import type { ClaimId, ClaimStore, ClaimView, KeptResult } from 'headgate/stores';
import { z } from 'zod';
import { isRefusal, type Refusal, refuse } from '../exchange/refusal.ts';
import { type ClaimHandle, isSameRequest, MAX_HANDLE, readHandle } from './claim-handle.ts';
import { type DecisionCaller, type DecisionOperation, decisionOperation, invalid } from './operation.ts';

const tag = 'Claims';
/** Largest body of a request that stores a response, in bytes. */
const MAX_COMPLETE_BYTES = 1_048_576;

const claim = z.string().max(MAX_HANDLE).describe('`claim` of the answer that acquired it');

const encoding = z.enum(['utf-8', 'base64']).default('utf-8').describe('How `body` is written');

/** A response that is stored under a key. */
export const response = z.object({
  status: z.int(),
  headers: z.array(z.object({ name: z.string(), value: z.string() })),
  body: z.string(),
  encoding: z.enum(['utf-8', 'base64']).describe('How `body` is written'),
});

const given = z.strictObject({
  status: z.int().min(200).max(599),
  headers: z
    .record(z.string(), z.union([z.string(), z.array(z.string())]))
    .default({})
    .describe('By name. Cookies, rate-limit fields and the like are never stored'),
  body: z
    .string()
    .optional()
    .describe('Without it, retries get 409 and the status in its text: for a body that is too large to be stored'),
  encoding,
});

/** The parts of the gateway that these operations use. */
export interface ClaimOperationsOptions {
  readonly claims: ClaimStore;
  /** The settings of a route. */
  readonly settings: (route: string) => ClaimSettings;
  readonly onEvent: (event: IdempotencyEvent) => void;
}

/** The operations of a program that executes the request of a claim. Any process with the same store answers them. */
export function claimOperations({ claims, settings, onEvent }: ClaimOperationsOptions): DecisionOperation[] {
  /** The claim in the store, if it is still about the same request. */
  const find = async (text: string, { key: { application: scope } }: DecisionCaller): Promise<Found | Refusal> => {
    const handle = readHandle(text);
    if (handle === undefined) return invalid('claim', 'is not a claim of this API');
    const id = { scope, key: handle.key };
    const view = await claims.inspect(id);
    if (view === undefined) return ABSENT;
    return isSameRequest(handle, view) ? { id, handle, view, settings: settings(handle.route) } : LOST;
  };
  return [
    decisionOperation({
      id: 'completeClaim',
      path: '/v1/claims/complete',
      tag,
      summary: 'Stores the response of a request, for its retries',
      description:
        'The first response counts. `superseded`: another attempt has stored one, and the client must get that. It may be sent again.',
      maxBodyBytes: MAX_COMPLETE_BYTES,
      body: z.strictObject({ claim, response: given }),
      answer: z.object({
        outcome: z.enum(['completed', 'superseded']),
        response: response.nullable().describe('The response that counts, if it is another one and was stored whole'),
      }),
      errors: [404, 409, 503],
      async run(body, caller) {
        // The provider did nothing, so a retry must be executed (I6).
        if (body.response.status === 429)
          return invalid('response.status', '429 is not an outcome, because nothing was executed: abandon the claim');
        const found = await find(body.claim, caller);
        if (isRefusal(found)) return found;
        const {
          id,
          view: { fingerprint },
          settings: { retentionMs, maxKeptBytes },
        } = found;
        const result = resultOf(body.response, maxKeptBytes);
        if (isRefusal(result)) return result;
        // The same with each repetition, so that a repetition is not taken for another attempt.
        const token = digestText(body.claim);
        const reply = await claims.complete(id, { token, fingerprint, retentionMs, result });
        if (reply.kind === 'lost') return LOST;
        if (reply.kind === 'superseded') {
          onEvent({ type: 'superseded', ...id });
          return { outcome: 'superseded' as const, response: shownResponse(reply.result) };
        }
        const valueKept = result.value !== undefined && reply.valueDropped !== true;
        onEvent({ type: 'completed', status: result.status, valueKept, ...id });
        return { outcome: 'completed' as const, response: null };
      },
    }),
    decisionOperation({
      id: 'extendClaim',
      path: '/v1/claims/extend',
      tag,
      summary: 'Renews the lease of a claim, while its request still runs',
      description: 'After its lease, the claim is an orphan: it is unknown whether the request was executed.',
      body: z.strictObject({ claim }),
      answer: z.object({ leaseMs: z.int().describe('How long the new lease lasts') }),
      errors: [404, 409, 503],
      async run(body, caller) {
        const found = await find(body.claim, caller);
        if (isRefusal(found)) return found;
        const { leaseMs } = found.settings;
        const reply = await claims.extend(found.id, { ...commandOf(found), leaseMs });
        if (reply.kind === 'settled') return COMPLETED;
        return reply.kind === 'ok' ? { leaseMs } : LOST;
      },
    }),
    decisionOperation({
      id: 'abandonClaim',
      path: '/v1/claims/abandon',
      tag,
      summary: 'Releases the key of a request that was not executed, and cannot be any more',
      description: 'A retry with the same key is executed then. It may be sent again. It refunds nothing.',
      body: z.strictObject({ claim }),
      answer: z.object({ outcome: z.literal('released') }),
      errors: [404, 409, 503],
      async run(body, caller) {
        const found = await find(body.claim, caller);
        if (isRefusal(found)) return found;
        const { id, handle, view, settings } = found;
        // It was sent before.
        if (view.state === 'free' && view.generation === handle.generation) return { outcome: 'released' as const };
        const { releasedRetentionMs } = settings;
        const reply = await claims.abandon(id, { ...commandOf(found), releasedRetentionMs });
        if (reply.kind === 'settled') return COMPLETED;
        if (reply.kind === 'lost') return LOST;
        onEvent({ type: 'released', ...id });
        return { outcome: 'released' as const };
      },
    }),
  ];
}

/** A claim of the caller's application, as the store has it. */
interface Found {
  readonly id: ClaimId;
  readonly handle: ClaimHandle;
  readonly view: ClaimView;
  readonly settings: ClaimSettings;
}

/** A command in the name of the owner, if the generation is still the owner's. */
function commandOf({ handle: { generation }, view: { owner, fingerprint }, settings: { retentionMs } }: Found) {
  return { token: owner, generation, fingerprint, retentionMs };
}

const ABSENT = refuse(404, 'errors/resource_not_found', 'There is no such claim, or its retention is over.');
const LOST = refuse(409, 'errors/conflict', 'Another attempt owns the claim, or another request the key.');
const COMPLETED = refuse(409, 'errors/conflict', 'The claim has an outcome, which stays.');

/** The stored response; null if it was too large to be stored, or was not stored by a gate. */
export function shownResponse({ value }: KeptResult): z.input<typeof response> | null {
  const stored = value === undefined ? undefined : decodeResponse(value);
  if (stored === undefined) return null;
  const { status, fields, body } = stored;
  const headers = fields.flatMap((name, i) => (i % 2 === 0 ? [{ name, value: fields[i + 1] as string }] : []));
  return { status, headers, ...textOf(body) };
}

/** Bytes as text for JSON. */
export function textOf(body: Uint8Array): { readonly body: string; readonly encoding: 'utf-8' | 'base64' } {
  const bytes = Buffer.from(body);
  const text = bytes.toString('utf8');
  return Buffer.from(text).equals(bytes)
    ? { body: text, encoding: 'utf-8' }
    : { body: bytes.toString('base64'), encoding: 'base64' };
}

/** A response as it is stored: without its body if that is missing or too large (I7). */
function resultOf({ body, encoding: form, ...head }: z.output<typeof given>, maxBytes: number): KeptResult | Refusal {
  const bytes = Buffer.from(body ?? '', form === 'base64' ? 'base64' : 'utf8');
  try {
    const result = storedResponse({ ...head, body: bytes });
    return body !== undefined && bytes.length <= maxBytes ? result : { status: result.status, value: undefined };
  } catch (error) {
    if (!isHeadgateError(error, 'invalid_option')) throw error;
    return refuse(422, 'errors/unprocessable_entity', (error as Error).message);
  }
}
