import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { isKeyExpiry, MAX_KEY_YEARS } from '../../domain/key-expiry.ts';
import { ServiceError } from '../../domain/service-error.ts';
import type { ListedKey, NewKey } from '../../keys/keys.ts';
import type { Rooms } from '../../rooms.ts';
import { callerOf, requireServiceKey } from '../authenticate.ts';
import { listAnswer, listOf, pageOf, pageQuery } from '../page.ts';
import { problems } from '../problem.ts';
import { line } from '../text.ts';

const newKeyBody = z
  .strictObject({
    name: line(200).describe('What people call the key.'),
    expires_at: z.iso
      .datetime({ offset: true })
      .describe(`When the key expires: in the future, at most ${MAX_KEY_YEARS} years from now.`),
    access: z
      .discriminatedUnion('type', [
        z.strictObject({ type: z.literal('global') }),
        z.strictObject({ type: z.literal('scope'), scope_id: z.string().describe('An active scope.') }),
      ])
      .describe('`global`: every account of the application. `scope`: the accounts of one scope.'),
  })
  .meta({
    id: 'ApiKeyRequest',
    examples: [{ name: 'Mailer', expires_at: '2027-01-31T12:00:00.000Z', access: { type: 'global' } }],
  });

const createdKey = z
  .object({
    object: z.literal('ApiKey'),
    id: z.string(),
    api_key: z.string().describe('The token. It is shown here and never again.'),
  })
  .meta({
    id: 'ApiKeyCreated',
    examples: [{ object: 'ApiKey', id: 'key_01kaj6q2m0e7r8s9t0v1w2x3y4', api_key: 'ck_acc_dev_…' }],
  });

const listedKey = z
  .object({
    object: z.literal('ApiKey'),
    id: z.string(),
    application_id: z.string(),
    name: z.string(),
    prefix: z.string().describe('First characters of the token. They do not authenticate.'),
    role: z.enum(['account', 'scoped']),
    account_scope_id: z.string().nullable().describe('The scope of a scoped key.'),
    issued_at: z.iso.datetime(),
    expires_at: z.iso.datetime(),
    last_used_at: z.iso.datetime().nullable().describe('Accurate to a minute.'),
  })
  .meta({
    id: 'ApiKey',
    examples: [
      {
        object: 'ApiKey',
        id: 'key_01kaj6q2m0e7r8s9t0v1w2x3y4',
        application_id: 'app_01kaj6q2m0e7r8s9t0v1w2x3y4',
        name: 'Mailer',
        prefix: 'ck_acc_dev_4fGh',
        role: 'account',
        account_scope_id: null,
        issued_at: '2026-11-21T12:00:00.000Z',
        expires_at: '2027-01-31T12:00:00.000Z',
        last_used_at: null,
      },
    ],
  });

const listQuery = z.strictObject({
  ...pageQuery,
  access: z.enum(['global', 'scope']).optional().describe('Only keys with this access.'),
  account_scope_id: z.string().max(200).optional().describe('Only keys of this scope.'),
});

const deletedKey = z
  .object({ object: z.literal('ApiKeyDeleted'), id: z.string() })
  .meta({ id: 'ApiKeyDeleted', examples: [{ object: 'ApiKeyDeleted', id: 'key_01kaj6q2m0e7r8s9t0v1w2x3y4' }] });

/** Account keys: global keys and keys of one scope. Service keys are not made, listed or deleted here. */
export const keyRoutes: FastifyPluginAsyncZod<{ rooms: Rooms }> = async (app, { rooms: { keys, clock } }) => {
  const tags = ['API keys'];

  app.post(
    '/v2/api-keys',
    {
      onRequest: requireServiceKey,
      schema: {
        operationId: 'createApiKey',
        summary: 'Create an account API key',
        tags,
        body: newKeyBody,
        response: { 200: createdKey, ...problems(404) },
      },
    },
    async (request) => {
      const { applicationId, environment } = callerOf(request);
      const { name, expires_at, access } = request.body;
      const expiresAt = expiryOf(expires_at, clock());
      const rights: Pick<NewKey, 'role' | 'scopeId'> =
        access.type === 'global' ? { role: 'account', scopeId: null } : { role: 'scoped', scopeId: access.scope_id };
      const { id, token } = await keys.create(applicationId, environment, { name, expiresAt, ...rights });
      return { object: 'ApiKey' as const, id, api_key: token };
    },
  );

  app.get(
    '/v2/api-keys',
    {
      onRequest: requireServiceKey,
      schema: {
        operationId: 'listApiKeys',
        summary: 'List account API keys',
        description: 'Expired keys are listed, revoked keys are not.',
        tags,
        querystring: listQuery,
        response: { 200: listOf('ApiKeyList', listedKey) },
      },
    },
    async (request) => {
      const { access, account_scope_id: scopeId } = request.query;
      const page = pageOf(request.query);
      const role = access && (access === 'global' ? 'account' : 'scoped');
      const rows = await keys.list(callerOf(request).applicationId, { role, scopeId }, page);
      return listAnswer('ApiKeyList', rows, page, shownKey);
    },
  );

  app.delete(
    '/v2/api-keys/:api_key_id',
    {
      onRequest: requireServiceKey,
      schema: {
        operationId: 'deleteApiKey',
        summary: 'Revoke an account API key',
        description: 'The key stops working at once. Its accounts stay.',
        tags,
        params: z.strictObject({ api_key_id: z.string() }),
        response: { 200: deletedKey, ...problems(404) },
      },
    },
    async (request) => {
      const id = request.params.api_key_id;
      if (!(await keys.revoke(callerOf(request).applicationId, id)))
        throw new ServiceError(
          404,
          'errors/invalid_resource_identifier',
          'No account key of your application has this id.',
        );
      return { object: 'ApiKeyDeleted' as const, id };
    },
  );
};

/** @throws ServiceError 422 */
function expiryOf(text: string, now: number): Date {
  const expiry = new Date(text);
  if (isKeyExpiry(expiry, now)) return expiry;
  throw new ServiceError(
    422,
    'errors/unprocessable_entity',
    `expires_at: must be in the future and at most ${MAX_KEY_YEARS} years from now`,
  );
}

function shownKey(key: ListedKey): z.output<typeof listedKey> {
  const { id, application_id, name, prefix, role, scope_id, issued_at, expires_at, last_used_at } = key;
  if (role === 'service') throw new Error('A service key is never shown.');
  return {
    object: 'ApiKey',
    id,
    application_id,
    name,
    prefix,
    role,
    account_scope_id: scope_id,
    issued_at: issued_at.toISOString(),
    expires_at: expires_at.toISOString(),
    last_used_at: last_used_at?.toISOString() ?? null,
  };
}
