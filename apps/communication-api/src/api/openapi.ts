import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';

const DESCRIPTION = `Send email from the mailboxes that your users have linked, and manage links, accounts, keys, scopes and limits.

Every request carries an API key in the header \`X-API-KEY\`. Every error is a JSON object with \`type\`, \`title\`, \`status\` and \`req_id\`.`;

/**
 * Makes the OpenAPI document from the schemas that validate: \`/openapi.json\`, and a page to read it, \`/docs\`. Routes
 * that are registered afterwards are in it.
 */
export async function describeApi(app: FastifyInstance, baseUrl: string): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Communication API', version: '2.0.0', description: DESCRIPTION },
      servers: [{ url: baseUrl }],
      components: { securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'X-API-KEY' } } },
      security: [{ apiKey: [] }],
    },
    transform: jsonSchemaTransform,
    transformObject: jsonSchemaTransformObject,
  });
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    staticCSP: true,
    uiConfig: { docExpansion: 'list', tryItOutEnabled: false },
  });
  let document: string | undefined;
  app.get('/openapi.json', { schema: { hide: true } }, async (_, reply) => {
    document ??= JSON.stringify(app.swagger());
    return reply.type('application/json; charset=utf-8').send(document);
  });
}
