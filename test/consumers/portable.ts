// The subpaths that need neither a framework nor Node: only the types of the language and of the web.
import { createGate, createIdempotency, createLimiter, type Decision, isHeadgateError, parseLimit } from 'headgate';
import { BodyNotReplayableError, fetchWithRetry } from 'headgate/client';
import { createClientIp } from 'headgate/client-ip';
import { fieldOfBody, headgate, idempotentRequest, passageOf, withHeadgate } from 'headgate/fetch';
import type { GateEvent } from 'headgate/gate';
import {
  createProblem,
  fingerprint,
  isBodyError,
  problemReply,
  rateLimitFields,
  readIdempotencyKey,
} from 'headgate/http';
import { type ClaimSettings, KeptFailureError } from 'headgate/idempotency';
import { type LayeredLimits, monotonicClock } from 'headgate/limits';
import { createMemoryAdjustments, createMemoryClaimStore, createMemoryStore } from 'headgate/memory';
import { recommendedLimits } from 'headgate/recommended';
import { type ShadowFigures, withShadow } from 'headgate/shadow';
import { AdjustmentConflictError, createSharedLimits, type SharedLimits } from 'headgate/shared-limits';
import { beginClaim, type ClaimStore, createWindowSet, evaluate, FITS, type LimitStore } from 'headgate/stores';
import { createJobWorker } from 'headgate/waiting';

const limiter = createLimiter({
  store: createMemoryStore({ maxKeys: 1_000, clock: { now: () => Math.floor(performance.now()) } }),
  limits: {
    default: { allMethods: ['60/1m', { max: 5_000, durationMs: 86_400_000 }] },
    providers: recommendedLimits,
    accounts: { acc_1: { routes: { 'POST /emails': ['2/10s'] } } },
  },
});
const idempotency = createIdempotency({ store: createMemoryClaimStore(), leaseMs: 30_000 });

const shared: SharedLimits = createSharedLimits({
  base: { default: { allMethods: ['60/1m'] }, providers: recommendedLimits },
  adjustments: createMemoryAdjustments(),
});
export const sharedLimiter = createLimiter({ store: createMemoryStore(), limits: shared });
export const change: Promise<number> = shared
  .put({ account: 'acc_1' }, ['120/1m'], { by: 'jane', forMs: 60_000 })
  .then(({ version }) => version)
  .catch((error: unknown) => (error instanceof AdjustmentConflictError ? (error.current?.version ?? 0) : 0));

const shadowed = withShadow(limiter, { limits: { allMethods: ['30/1m'] }, store: createMemoryStore(), sample: 0.1 });
export const figures: ShadowFigures = shadowed.shadow.figures();

export const waited: Promise<Decision> = createJobWorker(limiter, { maxQueue: 10 }).acquire(
  { account: 'acc_1', route: 'POST /emails' },
  { maxWaitMs: 1_000, signal: AbortSignal.timeout(1_000) },
);

const events: GateEvent[] = [];
const clientIp = createClientIp({ trustedProxies: ['loopback', '10.0.0.0/8'] });
const gate = createGate<Request>({
  limiter,
  idempotency,
  account: (request) => fieldOfBody(request, 'account_id', { maxBytes: 65_536 }),
  route: (request) => `${request.method} ${new URL(request.url).pathname}`,
  idempotent: (request) => idempotentRequest(request, { scope: clientIp('192.0.2.1', { forwarded: undefined }) ?? '' }),
  onEvent: (event) => events.push(event),
});

export const POST: (request: Request, context: { id: string }) => Promise<Response> = withHeadgate(
  gate,
  async (request, context: { id: string }) => {
    const remaining: number | undefined = passageOf(request)?.decision?.shown?.remaining;
    return new Response(`${context.id} ${remaining}`);
  },
  { cost: 2 },
);
export const middleware = headgate(gate.with({ route: 'GET /chats/:id' }));
export const limited = withHeadgate(
  { perAddress: ['100/1m'], address: (request: Request) => request.headers.get('cf-connecting-ip') ?? undefined },
  () => new Response(),
);

export async function use(): Promise<string> {
  const decision: Decision = limiter.consumeSync({
    account: 'acc_1',
    route: 'POST /emails',
    provider: 'imap',
    cost: 1,
  });
  if (!decision.accepted && decision.shown) return `${decision.shown.limit} ${decision.shown.resetMs}`;
  await limiter.refund(decision);
  limiter.adjust({ account: 'acc_1' }, parseLimit(['1/1s']));
  const fields: string | undefined = rateLimitFields(decision)['x-ratelimit-limit'];

  const result = await idempotency.run({ scope: 'app_1', key: 'k' }, { to: 'a' }, async () => ({ id: 'msg_1' }));
  if (result.kind === 'refused') return result.reason;
  if (result.kind === 'executed') return result.value.id;

  const key = readIdempotencyKey(['k']);
  const problem = problemReply(createProblem(404, 'errors/resource_not_found', undefined, 'req_1'));
  const value: string = await fingerprint({ method: 'POST', path: '/' }).then(String);
  try {
    const answer: Response = await fetchWithRetry('https://api.example/', { method: 'POST' }, { key: 'order-7' });
    return await answer.text();
  } catch (error) {
    if (isHeadgateError(error, 'store_timeout') || isBodyError(error, 'too_large')) return error.message;
    if (error instanceof BodyNotReplayableError) return error.code;
    throw new Error(`${fields} ${String(key)} ${problem.status} ${value}`);
  }
}

export const layered: LayeredLimits = {
  default: { allMethods: ['60/1m'] },
  plans: { pro: { allMethods: ['600/1m'] } },
};
export const settings: Partial<ClaimSettings> = { leaseMs: monotonicClock.now() > 0 ? 30_000 : 60_000 };
export const isStoredFailure = (error: unknown): boolean => error instanceof KeptFailureError;

// @ts-expect-error a misspelt option
createLimiter({ store: createMemoryStore(), limit: {} });
// @ts-expect-error a decision is a value, not its promise
limiter.consume({ account: 'a', route: 'r' }).accepted;
// @ts-expect-error a type other than a web request is not a request of this gate
gate.enter({ url: '/' });

export const stores: { limits: LimitStore; claims: ClaimStore } = {
  limits: createMemoryStore(),
  claims: createMemoryClaimStore(),
};
export const fits: boolean = evaluate(createWindowSet([], []), new Float64Array(0), 0, 1, 0) === FITS;
export const claimed: string = beginClaim(
  undefined,
  { token: 't', fingerprint: 'f', retentionMs: 1, leaseMs: 1, onOrphan: 'reject', dispatch: false },
  0,
).reply.kind;
