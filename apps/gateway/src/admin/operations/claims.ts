import { isHeadgateError } from 'headgate';
import { storedResponse } from 'headgate/http';
import { decodeResponse } from 'headgate/internal';
import type { ClaimId, ClaimView } from 'headgate/stores';
import { z } from 'zod';
import { InputError } from '../../api/input.ts';
import { type Caller, type Operation, operation } from '../../api/operation.ts';
import { countedWorkers, moment, named, next, paging, reason } from '../../api/schemas.ts';
import { digestOfToken } from '../../config/token-digest.ts';
import { type Refusal, refuse } from '../../exchange/refusal.ts';
import { CLAIM_STATES, scanClaims, shownClaim } from '../claim-scan.ts';
import { allOrphans } from '../combined-figures.ts';
import { type AdminContext, audit } from '../context.ts';
import { pageOf } from '../paging.ts';

const tag = 'Claims';
const MAX_KEY = 255;

const id = {
  application: named('The application whose key it is'),
  key: z.string().min(1).max(MAX_KEY).describe('The idempotency key, as the client sent it'),
};

const claim = z.object({
  application: z.string(),
  key: z.string(),
  state: z.enum(CLAIM_STATES),
  generation: z.int().describe('Rises with every new owner'),
  dispatched: z.boolean().describe('Whether the effect may have happened'),
  inherited: z.boolean().describe('Whether an earlier owner may have caused the effect'),
  leaseMs: z.int().describe('Time until the lease of its owner expires; 0 without one'),
  keptMs: z.int().describe('Time until the retention is over. An unknown outcome stays after it'),
  status: z.string().nullable().describe('HTTP status of the stored answer'),
  valueBytes: z.int().nullable().describe('Bytes of the stored answer; null if there is none, or it was too large'),
});
export type Claim = z.output<typeof claim>;

const orphan = z.object({ ...id, at: moment });
export type MetOrphan = z.output<typeof orphan>;

const answer = z.strictObject({
  status: z.int().min(200).max(599),
  headers: z.record(z.string(), z.string()).default({}),
  body: z.string().default(''),
});

/** The claims of idempotency keys, and the operator's actions on claims whose owner died. */
export function claimOperations(context: AdminContext): Operation[] {
  const { idempotency, traffic } = context;
  const find = async (of: ClaimId): Promise<ClaimView | Refusal> => (await idempotency.inspect(of)) ?? ABSENT;
  const changed = (caller: Caller, what: string, { scope, key }: ClaimId, why: string): void => {
    const shown = context.config().log.application ? { application: scope } : {};
    // A client may choose any text as a key.
    audit(context, caller, what, { ...shown, key_sha256: digestOfToken(key), reason: why });
  };
  return [
    operation({
      id: 'getClaim',
      method: 'GET',
      path: '/v1/claims',
      role: 'viewer',
      tag,
      summary: 'The claim of an idempotency key',
      query: z.strictObject(id),
      answer: claim,
      errors: [404, 503],
      async run({ query }) {
        const view = await find(idOf(query));
        return 'problem' in view ? view : shown(idOf(query), view);
      },
    }),
    operation({
      id: 'listOrphans',
      method: 'GET',
      path: '/v1/claims/orphans',
      role: 'viewer',
      tag,
      summary: 'The last 1,000 orphans that retries ran into, at this gateway',
      description: 'A retry has met it; it may have been completed or released since.',
      query: z.strictObject(paging),
      answer: z.object({ orphans: z.array(orphan), next, workers: countedWorkers }),
      async run({ query }) {
        const { each, workers } = await context.figures('orphans');
        const { entries, next } = pageOf(allOrphans(each), query);
        const orphans = entries.map(({ scope, key, atMs }) => ({
          application: scope,
          key,
          at: new Date(atMs).toISOString(),
        }));
        return { orphans, next, ...(workers && { workers }) };
      },
    }),
    operation({
      id: 'scanClaims',
      method: 'GET',
      path: '/v1/claims/scan',
      role: 'operator',
      tag,
      summary: 'Finds claims without their keys, such as orphans that no retry has met',
      description: SCAN,
      query: z.strictObject({
        state: z.enum(['orphan', 'in_progress', 'completed']).optional().describe('Without it: claims of every state'),
        ...paging,
      }),
      answer: z.object({
        claims: z.array(claim),
        looked: z.int().describe('How many claims were looked at, of every state'),
        next,
      }),
      errors: [409, 503],
      run: ({ query }) => scanClaims(context.store.claims, query),
    }),
    operation({
      id: 'getClaimResult',
      method: 'GET',
      path: '/v1/claims/result',
      role: 'admin',
      tag,
      summary: 'The stored answer of a completed claim. The log says who asked for it',
      query: z.strictObject(id),
      answer: z.object({
        status: z.int(),
        headers: z.array(z.object({ name: z.string(), value: z.string() })),
        body: z.string(),
        encoding: z.enum(['utf-8', 'base64']).describe('How `body` is written'),
      }),
      errors: [404, 503],
      async run({ query }, caller) {
        const view = await find(idOf(query));
        if ('problem' in view) return view;
        const stored = view.result?.value === undefined ? undefined : decodeResponse(view.result.value);
        if (stored === undefined)
          return refuse(404, 'errors/resource_not_found', 'The claim has no stored answer that can be shown.');
        changed(caller, 'claim result read', idOf(query), '');
        const { status, fields, body } = stored;
        const bytes = Buffer.from(body);
        const text = bytes.toString('utf8');
        const isText = Buffer.from(text).equals(bytes);
        const headers = fields.flatMap((name, i) => (i % 2 === 0 ? [{ name, value: fields[i + 1] as string }] : []));
        return {
          status,
          headers,
          body: isText ? text : bytes.toString('base64'),
          encoding: isText ? ('utf-8' as const) : ('base64' as const),
        };
      },
    }),
    operation({
      id: 'completeClaim',
      method: 'POST',
      path: '/v1/claims/complete',
      role: 'operator',
      tag,
      summary: 'Stores the outcome of an orphan, found out by hand. Every retry gets this answer',
      body: z.strictObject({ ...id, answer, reason }),
      answer: z.object({ outcome: z.literal('completed') }),
      errors: [404, 409, 503],
      async run({ body }, caller) {
        const of = idOf(body);
        const result = resultOf(body.answer);
        const view = await find(of);
        if ('problem' in view) return view;
        // Its owner may be about to store the real outcome.
        if (view.state === 'in_progress' && view.leaseMs > 0)
          return refuse(409, 'errors/conflict', 'in_progress: its owner still has the lease; wait for leaseMs.');
        const outcome = await idempotency.completeWith(of, result);
        if (outcome === 'absent') return ABSENT;
        if (outcome === 'already_completed')
          return refuse(409, 'errors/conflict', 'already_completed: the claim has an outcome, which stays.');
        if (outcome === 'changed') return CHANGED;
        changed(caller, 'claim completed', of, body.reason);
        traffic.onState({ state: 'claim_completed', by: caller.name });
        return { outcome };
      },
    }),
    operation({
      id: 'releaseClaim',
      method: 'POST',
      path: '/v1/claims/release',
      role: 'operator',
      tag,
      summary: 'Frees a key whose effect did not happen, and cannot happen any more',
      body: z.strictObject({
        ...id,
        force: z.boolean().default(false).describe('Also if the lease of its owner has not expired'),
        reason,
      }),
      answer: z.object({ outcome: z.literal('released') }),
      errors: [404, 409, 503],
      async run({ body }, caller) {
        const of = idOf(body);
        const outcome = await idempotency.release(of, { force: body.force });
        if (outcome === 'absent') return ABSENT;
        if (outcome === 'changed') return CHANGED;
        if (outcome === 'completed')
          return refuse(409, 'errors/conflict', 'completed: the claim has an outcome, which stays.');
        if (outcome === 'in_progress')
          return refuse(409, 'errors/conflict', 'in_progress: its owner still has the lease; see leaseMs, or force.');
        changed(caller, 'claim released', of, body.reason);
        traffic.onState({ state: 'claim_released', by: caller.name });
        return { outcome };
      },
    }),
  ];
}

const SCAN =
  'A request looks at ten times `limit` keys, and at most 1,000, so a page may have no claims although there is a next ' +
  'one. It may have a few more than `limit`. A claim may be on two pages.';
const ABSENT = refuse(404, 'errors/resource_not_found', 'absent: there is no claim of this key, or it is free.');
const CHANGED = refuse(409, 'errors/conflict', 'changed: another command changed the claim. Look at it again.');

function idOf({ application, key }: { readonly application: string; readonly key: string }): ClaimId {
  return { scope: application, key };
}

function shown(id: ClaimId, { result, ...view }: ClaimView): z.input<typeof claim> {
  const valueBytes = result?.value === undefined ? undefined : Buffer.byteLength(result.value);
  return shownClaim({ ...view, ...id, status: result?.status, valueBytes });
}

/** @throws InputError */
function resultOf(given: z.output<typeof answer>) {
  try {
    return storedResponse(given);
  } catch (error) {
    if (!isHeadgateError(error, 'invalid_option')) throw error;
    throw new InputError([{ path: 'answer', reason: (error as Error).message.replace(/^response\./, '') }]);
  }
}
