import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { VERSION } from '../version.ts';
import { type ApiDocument, finishDocument } from './document.ts';
import { DESCRIPTION, TAGS } from './document-text.ts';
import { problems } from './problem.ts';

type Transform = typeof jsonSchemaTransform;

/**
 * Makes the OpenAPI document from the schemas that validate: `/openapi.json`, and a page to read it, `/docs`. Routes
 * that are registered afterwards are in it.
 * @param baseUrl origin of the API. Port 0 is replaced by the port that the server listens on
 */
export async function describeApi(app: FastifyInstance, baseUrl: string): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      // Of the document and the service. The versions of the API are in the operations.
      info: { title: 'Communication API', version: VERSION, description: DESCRIPTION },
      tags: TAGS,
      components: { securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'X-API-KEY' } } },
      security: [{ apiKey: [] }],
    },
    transform: describeRoute,
    transformObject: (document) => {
      const url = baseUrl.endsWith(':0') ? app.listeningOrigin : baseUrl;
      const generated = jsonSchemaTransformObject(document) as ApiDocument;
      return finishDocument({ ...generated, servers: [{ url }] }) as ReturnType<typeof jsonSchemaTransformObject>;
    },
  });
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    // Everything is served from here, and "Try it out" calls this origin only.
    staticCSP: {
      'default-src': "'none'",
      'script-src': "'self'",
      'style-src': "'self'",
      'img-src': "'self' data:",
      'connect-src': "'self'",
      'base-uri': "'none'",
      'form-action': "'none'",
      'frame-ancestors': "'none'",
    },
    // By default, the page sends the document to a validator on the internet.
    uiConfig: { docExpansion: 'list', validatorUrl: null, layout: 'BaseLayout', defaultModelsExpandDepth: 0 },
    // The script of the page derives the address of the document from the address of the page, including its query.
    uiHooks: {
      onRequest: (request, reply, next) => {
        if (request.url.startsWith('/docs?')) void reply.redirect('/docs');
        else next();
      },
    },
    theme: { title: 'Communication API' },
  });
  let document: string | undefined;
  app.get('/openapi.json', { schema: { hide: true } }, async (_, reply) => {
    document ??= JSON.stringify(app.swagger());
    return reply.type('application/json; charset=utf-8').send(document);
  });
}

/** The schema of a route, with the errors that every route of its kind can answer. A route declares only its own. */
const describeRoute: Transform = (route) => {
  const { schema } = route;
  if (!('route' in route) || schema === undefined || schema.hide === true || schema.response === undefined)
    return jsonSchemaTransform(route);
  const { params, querystring } = schema;
  const methods = [route.route.method].flat();
  const hasBody = !methods.includes('GET');
  const common = problems(
    ...([401, 403, 429, 500, 503] as const),
    // A body that cannot be read, or a path with a malformed escape.
    ...(hasBody || params !== undefined ? ([400] as const) : []),
    ...(hasBody ? ([413] as const) : []),
    ...(hasBody || querystring !== undefined ? ([422] as const) : []),
  );
  return jsonSchemaTransform({ ...route, schema: { ...schema, response: { ...common, ...schema.response } } });
};
