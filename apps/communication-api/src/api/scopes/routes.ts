import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { ServiceError } from '../../domain/service-error.ts';
import type { Rooms } from '../../rooms.ts';
import type { Scope } from '../../scopes/scopes.ts';
import { callerOf, requireServiceKey } from '../authenticate.ts';
import { listAnswer, listOf, pageOf, pageQuery } from '../page.ts';
import { problems } from '../problem.ts';
import { line } from '../text.ts';

const name = line(200).describe('What people call the scope.');
const reference = line(200).nullable().describe('What your application calls it, for example the id of a customer.');

const scopeAnswer = z
  .object({
    object: z.literal('AccountScope'),
    id: z.string(),
    application_id: z.string(),
    name: z.string(),
    reference: z.string().nullable(),
    status: z.enum(['active', 'disabled']),
    created_at: z.iso.datetime(),
  })
  .meta({
    id: 'AccountScope',
    examples: [
      {
        object: 'AccountScope',
        id: 'scp_01kaj6q2m0e7r8s9t0v1w2x3y4',
        application_id: 'app_01kaj6q2m0e7r8s9t0v1w2x3y4',
        name: 'Customer 42',
        reference: '42',
        status: 'active',
        created_at: '2026-11-21T12:00:00.000Z',
      },
    ],
  });

const deletedScope = z.object({ object: z.literal('AccountScopeDeleted'), id: z.string() }).meta({
  id: 'AccountScopeDeleted',
  examples: [{ object: 'AccountScopeDeleted', id: 'scp_01kaj6q2m0e7r8s9t0v1w2x3y4' }],
});

const newScope = z
  .strictObject({ name, reference: reference.default(null) })
  .meta({ id: 'AccountScopeRequest', examples: [{ name: 'Customer 42', reference: '42' }] });

const scopeChanges = z
  .strictObject({ name: name.optional(), reference: reference.optional() })
  .meta({ id: 'AccountScopeChanges', examples: [{ name: 'Customer 42 GmbH' }] });

const params = z.strictObject({ scope_id: z.string() });

/** Scopes. Only service keys reach them. */
export const scopeRoutes: FastifyPluginAsyncZod<{ rooms: Rooms }> = async (app, { rooms: { scopes } }) => {
  const tags = ['Scopes'];
  app.addHook('onRequest', requireServiceKey);

  app.post(
    '/v2/scopes',
    {
      schema: {
        operationId: 'createScope',
        summary: 'Create a scope',
        tags,
        body: newScope,
        response: { 200: scopeAnswer },
      },
    },
    async (request) => shownScope(await scopes.create(callerOf(request).applicationId, request.body)),
  );

  app.get(
    '/v2/scopes',
    {
      schema: {
        operationId: 'listScopes',
        summary: 'List scopes',
        tags,
        querystring: z.strictObject(pageQuery),
        response: { 200: listOf('AccountScopeList', scopeAnswer) },
      },
    },
    async (request) => {
      const page = pageOf(request.query);
      const rows = await scopes.list(callerOf(request).applicationId, page);
      return listAnswer('AccountScopeList', rows, page, shownScope);
    },
  );

  app.get(
    '/v2/scopes/:scope_id',
    {
      schema: {
        operationId: 'getScope',
        summary: 'Get a scope',
        tags,
        params,
        response: { 200: scopeAnswer, ...problems(404) },
      },
    },
    async (request) => shownScope(await scopes.find(callerOf(request).applicationId, request.params.scope_id)),
  );

  app.patch(
    '/v2/scopes/:scope_id',
    {
      schema: {
        operationId: 'updateScope',
        summary: 'Rename a scope, or change its reference',
        tags,
        params,
        body: scopeChanges,
        response: { 200: scopeAnswer, ...problems(404) },
      },
    },
    async (request) =>
      shownScope(await scopes.update(callerOf(request).applicationId, request.params.scope_id, request.body)),
  );

  for (const [verb, status, effect] of [
    ['disable', 'disabled', 'Keys of the scope are refused until it is enabled. Nothing is deleted.'],
    ['enable', 'active', 'Keys of the scope work again.'],
  ] as const)
    app.post(
      `/v2/scopes/:scope_id/${verb}`,
      {
        schema: {
          operationId: `${verb}Scope`,
          summary: verb === 'disable' ? 'Disable a scope' : 'Enable a scope',
          description: effect,
          tags,
          params,
          response: { 200: scopeAnswer, ...problems(404) },
        },
      },
      async (request) =>
        shownScope(await scopes.setStatus(callerOf(request).applicationId, request.params.scope_id, status)),
    );

  app.delete(
    '/v2/scopes/:scope_id',
    {
      schema: {
        operationId: 'deleteScope',
        summary: 'Delete a scope that has no accounts',
        description: 'The keys of the scope are revoked.',
        tags,
        params,
        response: { 200: deletedScope, ...problems(404, 409) },
      },
    },
    async (request) => {
      const id = request.params.scope_id;
      const result = await scopes.remove(callerOf(request).applicationId, id);
      if (result === 'unknown') throw unknownScope();
      if (result === 'has accounts')
        throw new ServiceError(409, 'errors/conflict', 'The scope has accounts. Remove them first.');
      return { object: 'AccountScopeDeleted' as const, id };
    },
  );
};

/** @throws ServiceError 404 if the scope does not exist */
function shownScope(scope: Scope | undefined): z.output<typeof scopeAnswer> {
  if (scope === undefined) throw unknownScope();
  const { id, application_id, name, reference, status, created_at } = scope;
  return {
    object: 'AccountScope',
    id,
    application_id,
    name,
    reference,
    status,
    created_at: created_at.toISOString(),
  };
}

const unknownScope = (): ServiceError =>
  new ServiceError(404, 'errors/invalid_resource_identifier', 'No scope of your application has this id.');
