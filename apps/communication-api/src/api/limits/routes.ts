import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { METHODS } from '../../domain/methods.ts';
import { PROVIDER_NAMES } from '../../domain/providers.ts';
import { ServiceError } from '../../domain/service-error.ts';
import type { Caller } from '../../keys/keys.ts';
import type { EffectiveLimit, LimitOwner } from '../../limits/account-limits.ts';
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

/** Limits of the Methods API. Only service keys reach them. */
export const limitRoutes: FastifyPluginAsyncZod<{ rooms: Rooms }> = async (app, { rooms }) => {
  const { accounts, limits, limiter } = rooms;
  const tags = ['Limits'];
  app.addHook('onRequest', requireServiceKey);

  async function targetOf(
    caller: Caller,
    { provider, account_id }: { readonly provider?: string | undefined; readonly account_id?: string | undefined },
  ): Promise<LimitOwner> {
    const { applicationId } = caller;
    if (provider !== undefined && account_id === undefined) return { applicationId, provider };
    if (provider !== undefined || account_id === undefined)
      throw new ServiceError(422, 'errors/unprocessable_entity', EITHER);
    const account = await accessibleAccount(accounts, caller, account_id);
    return { applicationId, provider: account.provider, accountId: account.id };
  }

  /** @returns the limit that now applies */
  async function change(owner: LimitOwner, route: string | null, windows: readonly string[] | null, by: string) {
    await limits.changeNow(owner, route, windows, by);
    return shownLimit(limits.find(owner, route), owner);
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
          ? PROVIDER_NAMES.map((name) => ({ applicationId: caller.applicationId, provider: name }))
          : [await targetOf(caller, request.query)];
      const data = targets.flatMap((owner) => limits.list(owner).map((limit) => shownLimit(limit, owner)));
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
      const windows = checkedWindows(request.body.windows);
      return change(await targetOf(caller, request.body), request.body.route ?? null, windows, caller.keyId);
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
      return change(await targetOf(caller, request.query), request.query.route ?? null, null, caller.keyId);
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
      await limiter.reset(route == null ? { account: id } : { account: id, route });
      return { object: 'LimitCountersReset' as const, account_id: id, route: route ?? null };
    },
  );
};

function shownLimit(
  { route, windows, source }: EffectiveLimit,
  { provider, accountId }: LimitOwner,
): z.output<typeof limitAnswer> {
  // There are no limits of other routes.
  const method = route as z.output<typeof limitAnswer>['route'];
  return { object: 'Limit', provider, account_id: accountId ?? null, route: method, windows: [...windows], source };
}
