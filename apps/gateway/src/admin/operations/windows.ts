import type { Cost, WindowStatus } from 'headgate';
import { faultOfCost } from 'headgate/internal';
import { type Groups, groupAccount } from 'headgate/limits';
import { z } from 'zod';
import { blocksOf, type ShownBlock, shown } from '../../api/block-state.ts';
import { type Caller, type Operation, operation } from '../../api/operation.ts';
import { blockOfAll, inFlightOfAll, peekAll, type ShownInFlight } from '../../api/peek-all.ts';
import { blocked as block, countedWorkers, named, reason, windowState } from '../../api/schemas.ts';
import { peekEach, rounded, stateOf } from '../../api/window-state.ts';
import { cost, costIn } from '../../base/cost.ts';
import { consumerOf } from '../../config/account-source.ts';
import { groupsOf } from '../../config/groups.ts';
import type { Account } from '../../config/schema.ts';
import { isRefusal, type Refusal, refuse } from '../../exchange/refusal.ts';
import { NO_RATE, sumOfRates } from '../combined-figures.ts';
import { type AdminContext, accountOf, audit, limitedRoutes, refuseRoute, subjectOf } from '../context.ts';
import { type LimitOrigin, ORIGINS, originsOf } from '../limit-origins.ts';

const tag = 'Limits';

const account = named(
  'An account of the config, or `key:NAME`, `application:NAME`, `address:ADDRESS`, `group:NAME:ID`',
);
const route = named('A route of the config, such as `POST /api/v1/emails`');
const from = z.enum(ORIGINS).describe('The layer that the limit comes from');
const adjusted = z.boolean().describe('Whether an operator has set it');

const blocked = block.nullable().describe('The block that rejects before any window');
const lane = z.string().nullable().describe('The lane of the route: each `max` is its share; null: none');
const limitMax = z.int().optional().describe('The max of the limit itself; absent without a lane');
const running = z.object({ running: z.int(), max: z.int() });
const inFlight = running
  .nullable()
  .describe('How many requests are in flight, and how many may be, of the limit with the least room; null: no bound');
const countedWindows = z.array(windowState.extend({ from, adjusted, limitMax }));

const windows = z.object({
  account: z.string(),
  provider: z.string().nullable(),
  plan: z.string().nullable(),
  perMinute: z
    .object({ accepted: z.number(), rejected: z.number() })
    .describe('Its requests at this gateway, on all routes: the average of the last five to ten minutes'),
  blocked: blocked.describe('The block of the account: it rejects on every route with a window'),
  routes: z.array(
    z.object({
      route: z.string(),
      lane,
      blocked,
      inFlight,
      windows: countedWindows,
      groups: z
        .array(
          z.object({
            group: z.string(),
            account: z.string().describe('The account of the group: `group:NAME:ID`'),
            blocked,
            inFlight,
            windows: countedWindows,
          }),
        )
        .describe('The groups of the account and of the route, whose limits its requests must fit as well'),
    }),
  ),
  workers: countedWorkers,
});
export type Windows = z.output<typeof windows>;

const origin = z.object({ from, adjusted, windows: z.array(z.string()).describe('Such as `60/1m`') });

const effective = z.object({
  account: z.string(),
  provider: z.string().nullable(),
  plan: z.string().nullable(),
  route: z.string(),
  limits: z.array(
    origin.extend({
      limit: z.enum(['route', 'all-methods']),
      hides: z.array(origin).describe('Limits of less specific layers that do not apply'),
    }),
  ),
});

const explanation = z.object({
  accepted: z.boolean(),
  status: z
    .literal([200, 422, 429])
    .describe('What the limits would answer. 200: the request would pass; 422: its cost never fits'),
  rejectedBy: windowState.nullable().describe('The window without room'),
  blocked,
  inFlight: running
    .extend({ group: z.string().optional().describe('The group whose limit it is; absent if it is of the account') })
    .nullable()
    .describe('The requests in flight, of the limit with the least room; null: no bound'),
  passesInMs: z
    .int()
    .nullable()
    .describe(
      'When it would pass, if nothing else comes; null: never, or, if only the requests in flight reject it, when one has ended',
    ),
  windows: z.array(windowState),
});
export type Explanation = z.output<typeof explanation>;

/** The limits that apply to an account, and how full its windows are. */
export function windowOperations(context: AdminContext): Operation[] {
  const { config, limiter, sharedLimits, traffic } = context;
  const declared = (name: string) => config().routes.find(({ route }) => route === name);
  const look = async (of: Account, route: string, lane: string | null, block: Promise<ShownBlock | null>) => {
    const origins = originsOf(sharedLimits, of, route);
    const subject = { ...subjectOf(of, route), ...(lane !== null && { lane }) };
    const whole = lane === null ? [] : limiter().windowSet(subjectOf(of, route)).windows;
    const [statuses, blocked, inFlight] = await Promise.all([
      limiter().peek(subject),
      block,
      limiter().inFlight(subject),
    ]);
    return {
      // A request that no limit bounds is not blocked either.
      blocked: statuses.length === 0 && inFlight === undefined ? null : blocked,
      inFlight: inFlight ?? null,
      windows: statuses.map((status) => {
        const limitMax = whole.find((window) => isSameWindow(window, status))?.max;
        return { ...stateOf(status), ...originOf(origins, status), ...(limitMax !== undefined && { limitMax }) };
      }),
    };
  };
  const lookAtGroup = async (group: string, id: string, route: string, lane: string | null) => {
    const account = groupAccount(group, id);
    const block = limiter().blocked({ account, route });
    const of = { id: account, application: '', scope: null };
    const seen = await look(
      of,
      route,
      lane,
      block.then((found) => shown(found, 'group')),
    );
    return { group, account, ...seen, windows: seen.windows.map((window) => ({ ...window, group })) };
  };
  const peek = async (of: Account, route: string, blockOn: Awaited<ReturnType<typeof blocksOf>>) => {
    const { lane = null } = declared(route) ?? {};
    const groups = Object.entries(groupsOn(declared(route), of) ?? {});
    const [own, ...others] = await Promise.all([
      look(of, route, lane, blockOn(route)),
      ...groups.map(([group, id]) => lookAtGroup(group, id, route, lane)),
    ]);
    return { route, lane, ...own, groups: others };
  };
  return [
    operation({
      id: 'getEffectiveLimits',
      method: 'GET',
      path: '/v1/effective',
      role: 'viewer',
      tag,
      summary: 'The limits of an account on a route, and the layer that each comes from',
      query: z.strictObject({ account, route }),
      answer: effective,
      errors: [404],
      run({ query }) {
        const of = accountOf(context, query.account);
        if (isRefusal(of)) return of;
        const refusal = refuseRoute(config(), query.route, of);
        return refusal ?? { ...namesOf(of), route: query.route, limits: originsOf(sharedLimits, of, query.route) };
      },
    }),
    operation({
      id: 'getWindows',
      method: 'GET',
      path: '/v1/windows',
      role: 'viewer',
      tag,
      summary: 'How full every window of an account is. Nothing is charged',
      description:
        'On a route with a lane: the share of the lane. Its groups are those of the account and of the route. A key can have others.',
      query: z.strictObject({ account, route: route.optional() }),
      answer: windows,
      errors: [404, 503],
      async run({ query }) {
        const of = accountOf(context, query.account);
        if (isRefusal(of)) return of;
        const refusal = refuseRoute(config(), query.route, of);
        if (refusal !== undefined) return refusal;
        const names = limitedRoutes(config(), of, query.route);
        const blockOn = await blocksOf(limiter(), of);
        const { each, workers } = await context.figures('rates', [of.id]);
        const { accepted, rejected } = sumOfRates(each)[0] ?? NO_RATE;
        const perMinute = { accepted: rounded(accepted), rejected: rounded(rejected) };
        const routes = await peekEach(names, (name) => peek(of, name, blockOn));
        return { ...namesOf(of), perMinute, blocked: await blockOn(), routes, ...(workers && { workers }) };
      },
    }),
    operation({
      id: 'resetWindows',
      method: 'POST',
      path: '/v1/windows/reset',
      role: 'operator',
      tag,
      summary: 'Deletes counters, so that the next request finds every window empty',
      description:
        'Of an account, of a route of every account, or of one route of one account. Everything: role admin.',
      body: z.strictObject({
        account: account.optional(),
        route: route.optional(),
        all: z.literal(true).optional().describe('Confirms that every counter is meant'),
        reason,
      }),
      answer: z.object({ reset: z.literal(true) }),
      errors: [404, 503],
      async run({ body }, caller) {
        const fault = refuseReset(body, caller);
        if (fault !== undefined) return fault;
        const of = body.account === undefined ? undefined : accountOf(context, body.account);
        if (isRefusal(of)) return of;
        const refusal = refuseRoute(config(), body.route, of);
        if (refusal !== undefined) return refusal;
        await limiter().reset({
          ...(of === undefined ? {} : { account: of.id }),
          ...(body.route === undefined ? {} : { route: body.route }),
        });
        const account = config().log.account ? { account: of?.id ?? null } : {};
        audit(context, caller, 'windows reset', { ...account, route: body.route ?? null, reason: body.reason });
        traffic.onState({ state: 'windows_reset', by: caller.name });
        return { reset: true as const };
      },
    }),
    operation({
      id: 'explain',
      method: 'POST',
      path: '/v1/explain',
      role: 'viewer',
      tag,
      summary: 'What a request would be told now, by which window, and when it would pass. Nothing is charged',
      description:
        'Counts the groups of the account and of the route, and the lane of the route. A key can add others.',
      body: z.strictObject({ account, route, cost: cost.default(1) }),
      answer: explanation,
      errors: [404, 503],
      async run({ body }) {
        const of = accountOf(context, body.account);
        if (isRefusal(of)) return of;
        const refusal = refuseRoute(config(), body.route, of);
        if (refusal !== undefined) return refusal;
        const routeOf = declared(body.route);
        const subject = { ...subjectOf(of, body.route), lane: routeOf?.lane };
        const fault = faultOfCost(limiter(), subject, body.cost);
        if (fault !== undefined) return refuse(422, 'errors/unprocessable_entity', fault);
        const groups = groupsOn(routeOf, of);
        const [statuses, running] = await Promise.all([
          peekAll(limiter(), { ...subject, groups }),
          inFlightOfAll(limiter(), { ...subject, groups }),
        ]);
        const isLimited = statuses.length > 0 || running.length > 0;
        const blocked = isLimited ? await blockOfAll(limiter(), of, groups, body.route) : null;
        return explained(statuses, blocked, running, body.cost);
      },
    }),
  ];
}

interface WindowName extends Pick<WindowStatus, 'limit' | 'durationMs'> {
  readonly unit?: string | undefined;
}

/** Whether both are the same window of a set, with whatever max. */
function isSameWindow(one: WindowName, other: WindowName): boolean {
  return one.limit === other.limit && one.durationMs === other.durationMs && one.unit === other.unit;
}

function namesOf({ id, provider, plan }: Account) {
  return { account: id, provider: provider ?? null, plan: plan ?? null };
}

function originOf(origins: readonly LimitOrigin[], { limit }: WindowStatus): Pick<LimitOrigin, 'from' | 'adjusted'> {
  const { from, adjusted } = origins.find((each) => each.limit === limit) as LimitOrigin;
  return { from, adjusted };
}

/** Refuses a reset that could mean more than its sender thinks. */
function refuseReset(
  { account, route, all }: { account?: string | undefined; route?: string | undefined; all?: true | undefined },
  { role }: Caller,
): Refusal | undefined {
  const isForAll = account === undefined && route === undefined;
  if (isForAll && all !== true) return unprocessable('account: give account or route, or "all": true');
  if (!isForAll && all === true) return unprocessable('all: must not be given beside account and route');
  if (!isForAll || role === 'admin') return undefined;
  return refuse(403, 'errors/insufficient_permissions', 'To reset everything needs the role admin.');
}

function unprocessable(detail: string) {
  return refuse(422, 'errors/unprocessable_entity', detail);
}

/** The groups of a request; undefined without any. A group is in no other group. */
function groupsOn(route: Parameters<typeof groupsOf>[0], of: Account): Groups | undefined {
  return consumerOf(of.id)?.consumer === 'group' ? undefined : groupsOf(route, undefined, of);
}

/** What windows, a block and the requests in flight would say about a request of this cost. */
function explained(
  statuses: readonly WindowStatus[],
  blocked: z.output<typeof block> | null,
  running: readonly ShownInFlight[],
  given: Cost,
): z.input<typeof explanation> {
  const full = statuses.filter(({ remaining, unit }) => remaining < costIn(given, unit));
  const isImpossible = full.some(({ max, unit }) => max < costIn(given, unit));
  const waits = [...full.map(({ resetMs }) => resetMs), ...(blocked === null ? [] : [blocked.forMs])];
  const [inFlight = null] = [...running].sort((a, b) => a.max - a.running - (b.max - b.running));
  // Windows are checked first, because their rejection names a time.
  const isFull = waits.length === 0 && inFlight !== null && inFlight.running >= inFlight.max;
  const accepted = waits.length === 0 && !isFull;
  const [first] = full;
  const neverFits = blocked === null && first !== undefined && first.max < costIn(given, first.unit);
  return {
    accepted,
    status: accepted ? (200 as const) : neverFits ? (422 as const) : (429 as const),
    rejectedBy: blocked !== null || first === undefined ? null : stateOf(first),
    blocked,
    inFlight,
    passesInMs: isImpossible || isFull ? null : Math.max(0, ...waits),
    windows: statuses.map(stateOf),
  };
}
