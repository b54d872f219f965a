import type { Cost, Limiter } from 'headgate';
import type { GateAnswer, GateEntry } from 'headgate/gate';
import { createFingerprinter, type Fingerprint, isBodyError, readIdempotencyKey } from 'headgate/http';
import { faultOfCost } from 'headgate/internal';
import type { MaybePromise } from 'headgate/stores';
import { z } from 'zod';
import type { Accounts } from '../admission/accounts.ts';
import { departureSignal, forwardedKey, MISSING_KEY, reconcile } from '../admission/body-stage.ts';
import { blockOfAll, peekAll } from '../api/peek-all.ts';
import { blocked, windowState } from '../api/schemas.ts';
import { stateOf } from '../api/window-state.ts';
import { cost, finalCost } from '../base/cost.ts';
import { isPromise } from '../base/is-promise.ts';
import { consumerOf, isConsumer } from '../config/account-source.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { isRefusal, type Refusal, refuse, refuseBody } from '../exchange/refusal.ts';
import { response } from './claim-operations.ts';
import { type DecisionCaller, type DecisionOperation, decisionOperation, invalid } from './operation.ts';
import { MAX_RECEIPT, subjectOfReceipt } from './receipt.ts';
import { BAD_RECEIPT, type Settle } from './settlement.ts';
import { type FindSubject, type KnownSubject, subject } from './subject.ts';

const tag = 'Decisions';
/** Longest idempotency key, in characters. */
const MAX_KEY = 255;

const idempotency = z
  .strictObject({
    key: z.string().min(1).max(MAX_KEY).describe('The idempotency key, as the client sent it'),
    request: z
      .unknown()
      .refine((value) => value !== undefined, { error: 'is missing' })
      .describe('The request, or a digest of it, as any JSON: another one with the same key is refused'),
  })
  .describe('Acquires the claim of an idempotency key, if the route is idempotent');

const decision = z.object({
  outcome: z
    .enum(['accepted', 'unlimited', 'replayed'])
    .describe('unlimited: no limit applies. replayed: send `response` to the client, and execute nothing'),
  degraded: z.boolean().describe('Whether the failure policy decided, because the store is away'),
  windows: z.array(windowState).describe('After the charge. Empty if the decision is degraded'),
  claim: z
    .string()
    .nullable()
    .describe('Completes or abandons the claim; null without one, also if the store is away and it is bypassed'),
  receipt: z
    .string()
    .nullable()
    .describe(
      'Settles or refunds the charge later. null without `decisions.secret` in the config, or without a charge',
    ),
  leaseMs: z.int().nullable().describe('How long the claim lasts, unless it is extended'),
  response: response.nullable().describe('The stored response of the first request with this key'),
});
export type DecisionAnswer = z.input<typeof decision>;

/** The parts of the gateway that these operations use. */
export interface LimitOperationsOptions {
  readonly limiter: Limiter;
  readonly findSubject: FindSubject;
  readonly limitAddress: ((exchange: Exchange, address: string) => MaybePromise<GateAnswer | undefined>) | undefined;
  /** Claims the key and charges the limits. */
  readonly enter: (exchange: Exchange) => MaybePromise<GateEntry>;
  readonly fingerprintSecret: string | undefined;
  readonly accounts: Pick<Accounts, 'find'>;
  readonly settle: Settle;
}

const RATE_FIELDS = [
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'ratelimit',
  'ratelimit-policy',
];

/** The operations about limits. */
export function limitOperations(options: LimitOperationsOptions): DecisionOperation[] {
  const { limiter, findSubject, limitAddress, enter, fingerprintSecret, accounts, settle } = options;
  /** Puts the claim of the request on the exchange. */
  const setClaim = (
    { route, account }: KnownSubject,
    given: z.output<typeof idempotency> | undefined,
    { key: apiKey, exchange }: DecisionCaller,
  ): Refusal | undefined => {
    if (given === undefined) return route.idempotent?.required ? MISSING_KEY : undefined;
    if (route.idempotent === undefined) return invalid('idempotency', 'the route is not idempotent in the config');
    const key = readIdempotencyKey([given.key]);
    if (typeof key !== 'string') return invalid('idempotency.key', key?.detail ?? 'is empty');
    const named = isConsumer(route.source?.place) ? undefined : account?.id;
    const fingerprint = fingerprintOf(route.name, given.request, named ?? apiKey.scope ?? undefined, fingerprintSecret);
    if (isRefusal(fingerprint)) return fingerprint;
    const scope = apiKey.application;
    const signal = departureSignal(exchange.response);
    exchange.idempotent = {
      request: { scope, key, fingerprint, signal, reconcile, ...route.idempotent.settings },
      forwardedKey: forwardedKey({ scope, key }),
    };
    return undefined;
  };
  /** Why the limits of a request do not take its cost. */
  const costFault = ({ account, route }: KnownSubject, given: Cost | undefined): string | undefined => {
    if (account === undefined) return undefined;
    const { id, provider, plan } = account;
    return faultOfCost(limiter, { account: id, route: route.name, provider, plan }, given ?? route.cost ?? 1);
  };
  return [
    decisionOperation({
      id: 'decide',
      path: '/v1/decisions',
      tag,
      summary: 'Charges the limits of a request, or rejects it',
      description:
        'A rejection is the answer that the gateway itself would send: send it to the client as it is. With `idempotency` it acquires the claim of the key first.',
      body: z.strictObject({
        ...subject,
        cost: cost
          .optional()
          .describe('A number of requests, or a cost per unit of the limits. By default that of the route, or 1'),
        idempotency: idempotency.optional(),
      }),
      answer: decision,
      errors: [404, 403, 409, 429],
      fieldsOn: {
        200: [...RATE_FIELDS, 'idempotency-status'],
        409: ['retry-after'],
        422: RATE_FIELDS,
        429: RATE_FIELDS,
      },
      run(body, caller) {
        const { exchange, key } = caller;
        const found = findSubject(body, key, exchange);
        if (isRefusal(found)) return found;
        exchange.route = found.route;
        exchange.account = found.account;
        exchange.cost = body.cost;
        exchange.lane = found.lane;
        exchange.groups = found.groups;
        const fault = costFault(found, body.cost);
        if (fault !== undefined) return refuse(422, 'errors/unprocessable_entity', fault);
        const refusal = setClaim(found, body.idempotency, caller);
        if (refusal !== undefined) return refusal;
        if (found.address === undefined || limitAddress === undefined) return enter(exchange);
        const rejection = limitAddress(exchange, found.address);
        if (!isPromise(rejection)) return rejection ?? enter(exchange);
        return rejection.then((answer) => answer ?? enter(exchange));
      },
    }),
    decisionOperation({
      id: 'peek',
      path: '/v1/decisions/peek',
      tag,
      summary: 'The windows that a request must fit, without charging anything',
      body: z.strictObject(subject),
      answer: z.object({
        windows: z.array(windowState).describe('In the order of checking. Empty if no limit applies'),
        blocked: blocked.nullable().describe('The block that rejects before any window'),
      }),
      errors: [404, 403, 503],
      async run(body, { key, exchange }) {
        const found = findSubject(body, key, exchange);
        if (isRefusal(found)) return found;
        const { account, route, lane, groups } = found;
        exchange.route = route;
        exchange.account = account;
        if (account === undefined) return { windows: [], blocked: null };
        const { id, provider, plan } = account;
        const [windows, block] = await Promise.all([
          peekAll(limiter, { account: id, route: route.name, provider, plan, lane, groups }),
          blockOfAll(limiter, account, groups, route.name),
        ]);
        // Without a window nothing is checked, so a block does not reject either.
        return { windows: windows.map(stateOf), blocked: windows.length === 0 ? null : block };
      },
    }),
    decisionOperation({
      id: 'settle',
      path: '/v1/decisions/settle',
      tag,
      summary: 'Corrects the cost of an accepted request, once; a cost of 0 refunds it',
      description:
        'The key must have the role `service`, so that no client can refund itself. If the cost is higher than the charge, the difference is charged even if it does not fit.',
      body: z.strictObject({
        receipt: z.string().max(MAX_RECEIPT).describe('`receipt` of the decision'),
        cost: finalCost.describe(
          'What the request cost in the end: a number of requests, or a cost per unit. 0 refunds all units; units that are not named stay as they are',
        ),
      }),
      answer: z.object({
        changed: z.boolean().describe('false: it was settled before, or its windows are over'),
      }),
      errors: [403, 409, 503],
      async run({ receipt, cost }, { key }) {
        if (key.role !== 'service') return NO_SERVICE;
        const { account: id = '' } = subjectOfReceipt(receipt) ?? {};
        const account = accounts.find(id);
        // An address is of no application. Another application's receipt gets the same answer as one that is forged.
        if (account?.application !== key.application && consumerOf(id)?.consumer !== 'address') return BAD_RECEIPT;
        const changed = await settle(receipt, cost);
        return isRefusal(changed) ? changed : { changed };
      },
    }),
  ];
}

const NO_SERVICE = refuse(
  403,
  'errors/insufficient_permissions',
  'Only a key with the role service may settle a charge.',
);

/** The fingerprint of any JSON, as that of a request for the route. */
function fingerprintOf(
  route: string,
  request: unknown,
  account: string | undefined,
  secret: string | undefined,
): Fingerprint | Refusal {
  const [method = '', path = ''] = route.split(' ', 2);
  const fingerprinter = createFingerprinter({ method, path, contentType: 'application/json' }, { secret });
  try {
    fingerprinter.write(Buffer.from(JSON.stringify(request)));
    fingerprinter.end();
    return fingerprinter.fingerprint(account);
  } catch (error) {
    if (isBodyError(error)) return refuseBody(error);
    throw error;
  }
}
