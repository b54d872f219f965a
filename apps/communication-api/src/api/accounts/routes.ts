import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Account } from '../../accounts/accounts.ts';
import { ACCOUNT_STATUSES, shownStatus } from '../../domain/account-status.ts';
import { syncAt } from '../../domain/initial-sync.ts';
import { PROVIDER_NAMES } from '../../domain/providers.ts';
import type { Rooms } from '../../rooms.ts';
import { callerOf, serviceCallerOf } from '../authenticate.ts';
import { listAnswer, listOf, pageOf, pageQuery } from '../page.ts';
import { problems } from '../problem.ts';
import { line } from '../text.ts';
import { accessibleAccount, unknownAccount } from './accessible-account.ts';
import { revoke } from './revoke.ts';

/** Largest metadata, in bytes of JSON. */
const MAX_METADATA = 4_096;

const json = z.record(z.string(), z.unknown());

const accountAnswer = z
  .object({
    object: z.literal('Account'),
    id: z.string(),
    application_id: z.string(),
    user_id: z.string().describe("The provider's own id of the account, which never changes."),
    provider: z.string(),
    name: z.string().describe("The address, or the provider's name for the account."),
    status: z
      .enum(ACCOUNT_STATUSES)
      .describe('`disconnected`: its user has to link it again. `error`: the provider is away. `paused`: by a client.'),
    status_reason: z
      .string()
      .nullable()
      .describe('The type of the error that made the account `disconnected` or `error`; else null.'),
    scope_id: z.string().nullable(),
    created_at: z.iso.datetime(),
    initial_sync: z.object({
      status: z.enum(['running', 'completed']),
      started_at: z.iso.datetime(),
      progress: z.number().min(0).max(1).describe('The part that is done.'),
    }),
    metadata: json.describe('What your application stores with the account.'),
    proxy: json.nullable().describe('The proxy of the account, without its password.'),
  })
  .meta({
    id: 'Account',
    examples: [
      {
        object: 'Account',
        id: 'acc_01kaj6q2m0e7r8s9t0v1w2x3y4',
        application_id: 'app_01kaj6q2m0e7r8s9t0v1w2x3y4',
        user_id: '108453',
        provider: 'google',
        name: 'ann@example.com',
        status: 'running',
        status_reason: null,
        scope_id: null,
        created_at: '2026-11-21T12:00:00.000Z',
        initial_sync: { status: 'completed', started_at: '2026-11-21T12:00:00.000Z', progress: 1 },
        metadata: { customer: 42 },
        proxy: null,
      },
    ],
  });

const removedAccount = z
  .object({ object: z.literal('AccountRemoved'), id: z.string() })
  .meta({ id: 'AccountRemoved', examples: [{ object: 'AccountRemoved', id: 'acc_01kaj6q2m0e7r8s9t0v1w2x3y4' }] });

const metadata = json
  .refine((value) => Buffer.byteLength(JSON.stringify(value)) <= MAX_METADATA, {
    error: `must have at most ${MAX_METADATA} bytes as JSON`,
  })
  .describe(
    `What your application stores with the account: at most ${MAX_METADATA} bytes of JSON. Replaced as a whole.`,
  );

const accountChanges = z
  .strictObject({
    metadata: metadata.optional(),
    scope_id: z.string().optional().describe('An active scope.'),
    paused: z.boolean().optional().describe('A paused account sends nothing.'),
  })
  .meta({ id: 'AccountChanges', examples: [{ metadata: { customer: 42 }, paused: true }] });

const listQuery = z.strictObject({
  ...pageQuery,
  status: z.enum(ACCOUNT_STATUSES).optional(),
  provider: z.enum(PROVIDER_NAMES).optional(),
  scope_id: z.string().max(200).optional().describe('Only accounts of this scope.'),
  search: line(200).optional().describe('A part of `name` or `user_id`, in upper or lower case.'),
});

const params = z.strictObject({ account_id: z.string() });

/** Linked accounts. A scoped key reaches only the accounts of its scope. */
export const accountRoutes: FastifyPluginAsyncZod<{ rooms: Rooms }> = async (app, { rooms }) => {
  const { accounts, clock } = rooms;
  const tags = ['Accounts'];

  app.get(
    '/v2/accounts/:account_id',
    {
      schema: {
        operationId: 'getAccount',
        summary: 'Get an account',
        tags,
        params,
        response: { 200: accountAnswer, ...problems(404) },
      },
    },
    async (request) =>
      shownAccount(await accessibleAccount(accounts, callerOf(request), request.params.account_id), clock()),
  );

  app.get(
    '/v2/accounts',
    {
      schema: {
        operationId: 'listAccounts',
        summary: 'List accounts',
        tags,
        querystring: listQuery,
        response: { 200: listOf('AccountList', accountAnswer) },
      },
    },
    async (request) => {
      const { applicationId, role, scopeId } = callerOf(request);
      const { status, provider, scope_id, search } = request.query;
      const page = pageOf(request.query);
      const own = role === 'scoped' ? [scopeId ?? ''] : [];
      const scopeIds = scope_id === undefined ? own : [...own, scope_id];
      const rows = await accounts.list(applicationId, { status, provider, search, scopeIds }, page);
      const now = clock();
      return listAnswer('AccountList', rows, page, (row) => shownAccount(row, now));
    },
  );

  app.patch(
    '/v2/accounts/:account_id',
    {
      schema: {
        operationId: 'updateAccount',
        summary: 'Change the metadata of an account, pause it, or assign its scope',
        description: 'Only a service key assigns a scope, and only to an account without a scope.',
        tags,
        params,
        body: accountChanges,
        response: { 200: accountAnswer, ...problems(404, 409) },
      },
    },
    async (request) => {
      const { id } = await accessibleAccount(accounts, callerOf(request), request.params.account_id);
      const { metadata, scope_id: scopeId, paused } = request.body;
      if (scopeId !== undefined) serviceCallerOf(request);
      const account = await accounts.update(callerOf(request).applicationId, id, { metadata, scopeId, paused });
      // It was removed since.
      if (account === undefined) throw unknownAccount();
      return shownAccount(account, clock());
    },
  );

  app.delete(
    '/v2/accounts/:account_id',
    {
      schema: {
        operationId: 'deleteAccount',
        summary: 'Remove an account',
        description:
          'Its credentials are erased, and withdrawn at the provider if the provider supports it. The mailbox is not changed.',
        tags,
        params,
        response: { 200: removedAccount, ...problems(404) },
      },
    },
    async (request) => {
      const { id, application_id } = await accessibleAccount(accounts, callerOf(request), request.params.account_id);
      const removed = await accounts.remove(application_id, id);
      if (removed === undefined) throw unknownAccount();
      await revoke(rooms, removed);
      return { object: 'AccountRemoved' as const, id };
    },
  );
};

function shownAccount(account: Account, nowMs: number): z.output<typeof accountAnswer> {
  const { id, application_id, provider_user_id, provider, name, scope_id, created_at, sync, metadata, proxy } = account;
  return {
    object: 'Account',
    id,
    application_id,
    user_id: provider_user_id,
    provider,
    name,
    status: shownStatus(account),
    status_reason: account.status_reason,
    scope_id,
    created_at: created_at.toISOString(),
    initial_sync: syncAt(sync, nowMs),
    metadata,
    proxy,
  };
}
