import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { EffectiveLimit } from '../../domain/effective-limits.ts';
import { METHODS } from '../../domain/methods.ts';
import { PROVIDER_NAMES } from '../../domain/providers.ts';
import { ServiceError } from '../../domain/service-error.ts';
import type { Caller } from '../../keys/keys.ts';
import { withCounters } from '../../limits/counters.ts';
import type { LimitOwner } from '../../limits/overrides.ts';
import { checkedWindows } from '../../limits/windows.ts';
import type { Rooms } from '../../rooms.ts';
import { accessibleAccount } from '../accounts/accessible-account.ts';
import { callerOf, requireServiceKey } from '../authenticate.ts';
import { problems } from '../problem.ts';

const provider = z.enum(PROVIDER_NAMES).optional().describe('All accounts of this provider.');
const accountId = z.string().optional().describe('This account. Not together with provider.');
const route = z.enum(METHODS);
const EITHER = 'Give one of them: provider or account_id.';

const limitAnswer = z
  .object({
    object: z.literal('Limit'),
    provider: z.string(),
    account_id: z.string().nullable().describe('Null: the limit of every account of the provider.'),
    route: route.nullable().describe('Null: the limit of every route.'),
    windows: z
      .array(z.string())
      .describe('Each is `requests/duration`, such as `120/1m`. Empty: requests are not limited by it.'),
    source: z
      .enum(['recommended', 'application', 'account'])
      .describe('`application`: adjusted for the provider. `account`: adjusted for the account.'),
  })
  .meta({
    id: 'Limit',
    examples: [
      {
        object: 'Limit',
        provider: 'google',
        account_id: null,
        route: 'POST /api/v1/emails',
        windows: ['120/1m', '20000/1d'],
        source: 'application',
      },
    ],
  });

const limitList = z
  .object({ object: z.literal('LimitList'), data: z.array(limitAnswer) })
  .meta({ id: 'LimitList', examples: [{ object: 'LimitList', data: limitAnswer.meta()?.examples ?? [] }] });

const resetAnswer = z
  .object({ object: z.literal('LimitCountersReset'), account_id: z.string(), route: route.nullable() })
  .meta({
    id: 'LimitCountersReset',
    examples: [{ object: 'LimitCountersReset', account_id: 'acc_01kaj6q2m0e7r8s9t0v1w2x3y4', route: null }],
  });

const windows = z
  .array(z.string().max(40))
  .min(1, 'give at least one window; DELETE restores the recommendation')
  .max(2, 'a limit has up to two windows')
  .describe('One or two windows with distinct durations, such as `["120/1m","20000/1d"]`. Units: ms, s, m, h, d.');

const newLimit = z
  .strictObject({
    provider,
    account_id: accountId,
    route: route.nullish().describe('The limit of this route. Default: the limit of every route.'),
    windows,
  })
  .meta({ id: 'LimitRequest', examples: [{ provider: 'google', windows: ['120/1m', '20000/1d'] }] });

const countersToReset = z
  .strictObject({
    account_id: z.string(),
    route: route.nullish().describe('Only the counters of this route. Default: all counters of the account.'),
  })
  .meta({ id: 'LimitCountersResetRequest', examples: [{ account_id: 'acc_01kaj6q2m0e7r8s9t0v1w2x3y4' }] });

/** The limits that a request names: the limits of a provider, or of one account. */
interface Target {
  readonly provider: string;
  readonly accountId: string | undefined;
  readonly owner: LimitOwner;
}

/** Limits of the Methods API. Only service keys reach them. */
export const limitRoutes: FastifyPluginAsyncZod<{ rooms: Rooms }> = async (app, { rooms }) => {
  const { accounts, overrides, book, limiter } = rooms;
  const tags = ['Limits'];
  app.addHook('onRequest', requireServiceKey);

  async function targetOf(
    caller: Caller,
    { provider, account_id }: { readonly provider?: string | undefined; readonly account_id?: string | undefined },
  ): Promise<Target> {
    if (provider !== undefined && account_id === undefined)
      return { provider, accountId: undefined, owner: { provider } };
    if (provider !== undefined || account_id === undefined)
      throw new ServiceError(422, 'errors/unprocessable_entity', EITHER);
    const account = await accessibleAccount(accounts, caller, account_id);
    return { provider: account.provider, accountId: account.id, owner: { accountId: account.id } };
  }

  const listed = (applicationId: string, { provider, accountId }: Omit<Target, 'owner'>) =>
    book.list(applicationId, provider, accountId).map((limit) => shownLimit(limit, provider, accountId));

  /** The limit that now applies, after a change. */
  async function changed(applicationId: string, target: Target, route: string | null) {
    await book.reload(applicationId);
    const limit = listed(applicationId, target).find((each) => each.route === route);
    if (limit === undefined) throw new Error(`The route ${route} has no limit.`);
    return limit;
  }

  app.get(
    '/v2/limits',
    {
      schema: {
        operationId: 'listLimits',
        summary: 'List the limits of a provider or an account',
        description: 'Without a provider and an account: the limits of every provider.',
        tags,
        querystring: z.strictObject({ provider, account_id: accountId }),
        response: { 200: limitList, ...problems(404) },
      },
    },
    async (request) => {
      const caller = callerOf(request);
      const { provider, account_id } = request.query;
      const targets =
        provider === undefined && account_id === undefined
          ? PROVIDER_NAMES.map((name) => ({ provider: name, accountId: undefined }))
          : [await targetOf(caller, request.query)];
      const data = targets.flatMap((target) => listed(caller.applicationId, target));
      return { object: 'LimitList' as const, data };
    },
  );

  app.put(
    '/v2/limits',
    {
      schema: {
        operationId: 'setLimit',
        summary: 'Adjust a limit',
        description:
          'Requests that were counted stay counted if the length of their window stays. Values above the recommendation risk `provider/too_many_requests`.',
        tags,
        body: newLimit,
        response: { 200: limitAnswer, ...problems(404) },
      },
    },
    async (request) => {
      const caller = callerOf(request);
      const { applicationId, keyId } = caller;
      const route = request.body.route ?? null;
      const windows = checkedWindows(request.body.windows);
      const target = await targetOf(caller, request.body);
      await overrides.set(applicationId, target.owner, route, windows, keyId);
      return changed(applicationId, target, route);
    },
  );

  app.delete(
    '/v2/limits',
    {
      schema: {
        operationId: 'resetLimit',
        summary: 'Reset a limit to the recommendation',
        description: 'For an account: to the limit of its provider. Does nothing if the limit was not adjusted.',
        tags,
        querystring: z.strictObject({
          provider,
          account_id: accountId,
          route: route.optional().describe('The limit of this route. Default: the limit of every route.'),
        }),
        response: { 200: limitAnswer, ...problems(404) },
      },
    },
    async (request) => {
      const caller = callerOf(request);
      const route = request.query.route ?? null;
      const target = await targetOf(caller, request.query);
      await overrides.remove(caller.applicationId, target.owner, route);
      return changed(caller.applicationId, target, route);
    },
  );

  app.post(
    '/v2/limits/counters/reset',
    {
      schema: {
        operationId: 'resetLimitCounters',
        summary: 'Reset the usage of an account',
        tags,
        body: countersToReset,
        response: { 200: resetAnswer, ...problems(404) },
      },
    },
    async (request) => {
      const { route } = request.body;
      const { id } = await accessibleAccount(accounts, callerOf(request), request.body.account_id);
      await withCounters(() => limiter.reset(route == null ? { account: id } : { account: id, route }));
      return { object: 'LimitCountersReset' as const, account_id: id, route: route ?? null };
    },
  );
};

function shownLimit(
  { route, windows, source }: EffectiveLimit,
  provider: string,
  accountId: string | undefined,
): z.output<typeof limitAnswer> {
  // The book contains no other routes.
  const method = route as z.output<typeof limitAnswer>['route'];
  return { object: 'Limit', provider, account_id: accountId ?? null, route: method, windows: [...windows], source };
}
