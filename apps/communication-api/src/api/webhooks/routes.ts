import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { checkApplicationUrl } from '../../domain/application-url.ts';
import type { EventType } from '../../domain/event-types.ts';
import { ServiceError } from '../../domain/service-error.ts';
import type { Rooms } from '../../rooms.ts';
import type { Conversation } from '../../webhooks/conversations.ts';
import type { ConversationError } from '../../webhooks/delivery.ts';
import type { Endpoint } from '../../webhooks/endpoints.ts';
import { callerOf, requireServiceKey } from '../authenticate.ts';
import { listAnswer, listOf, pageOf, pageQuery } from '../page.ts';
import { problems } from '../problem.ts';
import {
  conversationAnswer,
  createdEndpoint,
  deletedEndpoint,
  endpointAnswer,
  endpointChanges,
  newEndpoint,
  redelivery,
  rotatedSecret,
} from './schema.ts';

const params = z.strictObject({ endpoint_id: z.string() });

const conversationQuery = z.strictObject({
  ...pageQuery,
  endpoint_id: z.string().max(200).optional().describe('Only requests to this endpoint.'),
  event_id: z.string().max(200).optional().describe('Only requests with this event.'),
});

/** Webhooks. Only service keys reach them. */
export const webhookRoutes: FastifyPluginAsyncZod<{ rooms: Rooms }> = async (app, { rooms }) => {
  const { endpoints, fanOut, conversations } = rooms;
  const tags = ['Webhooks'];
  app.addHook('onRequest', requireServiceKey);

  app.post(
    '/v2/webhooks/endpoints',
    {
      schema: {
        operationId: 'createWebhookEndpoint',
        summary: 'Create an endpoint that receives events',
        tags,
        body: newEndpoint,
        response: { 200: createdEndpoint, ...problems(404, 409) },
      },
    },
    async (request) => {
      const { applicationId, environment } = callerOf(request);
      const { url, trigger_events, account_ids, description, enabled } = request.body;
      checkApplicationUrl('url', url, environment);
      const { endpoint, secret } = await endpoints.create(applicationId, {
        ...{ url, description, enabled },
        ...{ triggerEvents: trigger_events, accountIds: account_ids },
      });
      return { ...shownEndpoint(endpoint), secret };
    },
  );

  app.get(
    '/v2/webhooks/endpoints',
    {
      schema: {
        operationId: 'listWebhookEndpoints',
        summary: 'List endpoints',
        tags,
        querystring: z.strictObject(pageQuery),
        response: { 200: listOf('WebhookEndpointList', endpointAnswer) },
      },
    },
    async (request) => {
      const page = pageOf(request.query);
      const rows = await endpoints.list(callerOf(request).applicationId, page);
      return listAnswer('WebhookEndpointList', rows, page, shownEndpoint);
    },
  );

  app.get(
    '/v2/webhooks/endpoints/:endpoint_id',
    {
      schema: {
        operationId: 'getWebhookEndpoint',
        summary: 'Get an endpoint',
        tags,
        params,
        response: { 200: endpointAnswer, ...problems(404) },
      },
    },
    async (request) => shownEndpoint(await endpoints.find(callerOf(request).applicationId, request.params.endpoint_id)),
  );

  app.patch(
    '/v2/webhooks/endpoints/:endpoint_id',
    {
      schema: {
        operationId: 'updateWebhookEndpoint',
        summary: 'Change, disable or enable an endpoint',
        description: 'Disabling drops the events that wait for the endpoint. They can be delivered again.',
        tags,
        params,
        body: endpointChanges,
        response: { 200: endpointAnswer, ...problems(404) },
      },
    },
    async (request) => {
      const { applicationId, environment } = callerOf(request);
      const { url, trigger_events, account_ids, description, enabled } = request.body;
      if (url !== undefined) checkApplicationUrl('url', url, environment);
      return shownEndpoint(
        await endpoints.update(applicationId, request.params.endpoint_id, {
          ...{ url, description, enabled },
          ...{ triggerEvents: trigger_events, accountIds: account_ids },
        }),
      );
    },
  );

  app.delete(
    '/v2/webhooks/endpoints/:endpoint_id',
    {
      schema: {
        operationId: 'deleteWebhookEndpoint',
        summary: 'Delete an endpoint',
        description: 'The events that wait for the endpoint are dropped.',
        tags,
        params,
        response: { 200: deletedEndpoint, ...problems(404) },
      },
    },
    async (request) => {
      const id = request.params.endpoint_id;
      if (!(await endpoints.remove(callerOf(request).applicationId, id))) throw unknownEndpoint();
      return { object: 'WebhookEndpointDeleted' as const, id };
    },
  );

  app.post(
    '/v2/webhooks/endpoints/:endpoint_id/secret',
    {
      schema: {
        operationId: 'rotateWebhookSecret',
        summary: 'Make a new secret for an endpoint',
        description: 'For 24 hours, requests are signed with both secrets.',
        tags,
        params,
        response: { 200: rotatedSecret, ...problems(404) },
      },
    },
    async (request) => {
      const id = request.params.endpoint_id;
      const rotated = await endpoints.rotateSecret(callerOf(request).applicationId, id);
      if (rotated === undefined) throw unknownEndpoint();
      const { secret, previousUntil } = rotated;
      return {
        object: 'WebhookSecret' as const,
        endpoint_id: id,
        secret,
        previous_valid_until: previousUntil.toISOString(),
      };
    },
  );

  app.get(
    '/v2/webhooks/conversations',
    {
      schema: {
        operationId: 'listWebhookConversations',
        summary: 'List the requests to endpoints, and their answers',
        description: 'One entry per attempt. They are kept for 14 days.',
        tags,
        querystring: conversationQuery,
        response: { 200: listOf('WebhookConversationList', conversationAnswer) },
      },
    },
    async (request) => {
      const { endpoint_id: endpointId, event_id: eventId } = request.query;
      const page = pageOf(request.query);
      const rows = await conversations.list(callerOf(request).applicationId, { endpointId, eventId }, page);
      return listAnswer('WebhookConversationList', rows, page, shownConversation);
    },
  );

  app.post(
    '/v2/webhooks/events/:event_id/redeliver',
    {
      schema: {
        operationId: 'redeliverWebhookEvent',
        summary: 'Deliver an event again',
        description: 'An event is kept for 30 days. Its attempts begin anew.',
        tags,
        params: z.strictObject({ event_id: z.string() }),
        querystring: z.strictObject({
          endpoint_id: z
            .string()
            .optional()
            .describe('Deliver to this endpoint, whatever it asks for. Default: every endpoint that takes the event.'),
        }),
        response: { 200: redelivery, ...problems(404, 409) },
      },
    },
    async (request) => {
      const { event_id } = request.params;
      const endpointIds = await fanOut.redeliver(callerOf(request).applicationId, event_id, request.query.endpoint_id);
      return { object: 'WebhookRedelivery' as const, event_id, endpoint_ids: [...endpointIds] };
    },
  );
};

/** @throws ServiceError 404 if the endpoint does not exist */
function shownEndpoint(endpoint: Endpoint | undefined): z.output<typeof endpointAnswer> {
  if (endpoint === undefined) throw unknownEndpoint();
  const { id, application_id, url, trigger_events, account_ids, description, enabled } = endpoint;
  return {
    object: 'WebhookEndpoint',
    id,
    application_id,
    url,
    trigger_events,
    account_ids,
    description,
    enabled,
    disabled_reason: endpoint.disabled_reason,
    failing_since: endpoint.failing_since?.toISOString() ?? null,
    created_at: endpoint.created_at.toISOString(),
  };
}

function shownConversation(conversation: Conversation): z.output<typeof conversationAnswer> {
  const { application_id: _, event_type, error, next_attempt_at, created_at, ...rest } = conversation;
  return {
    object: 'WebhookConversation',
    ...rest,
    event_type: event_type as EventType,
    error: error as ConversationError | null,
    next_attempt_at: next_attempt_at?.toISOString() ?? null,
    created_at: created_at.toISOString(),
  };
}

const unknownEndpoint = (): ServiceError =>
  new ServiceError(404, 'errors/invalid_resource_identifier', 'No endpoint of your application has this id.');
