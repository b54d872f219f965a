import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import fastify, {
  type FastifyBaseLogger,
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import { serializerCompiler } from 'fastify-type-provider-zod';
import { problemReply } from 'headgate/http';
import { accountRoutes } from './api/accounts/routes.ts';
import { authenticator } from './api/authenticate.ts';
import { domainRoutes } from './api/domains/routes.ts';
import { tlsAsk } from './api/domains/tls-ask.ts';
import { emailRoutes } from './api/emails/routes.ts';
import { parseUrlEncoded } from './api/form.ts';
import { keyRoutes } from './api/keys/routes.ts';
import { limitRoutes } from './api/limits/routes.ts';
import { linkRoutes } from './api/links/routes.ts';
import { mockRoutes } from './api/mock/routes.ts';
import { describeApi } from './api/openapi.ts';
import { problemOf } from './api/problem.ts';
import { scopeRoutes } from './api/scopes/routes.ts';
import { acceptedTypes, requireBody, validatorCompiler } from './api/validate.ts';
import { webhookRoutes } from './api/webhooks/routes.ts';
import { dashboard } from './dashboard/dashboard.ts';
import { isUnavailable } from './domain/database-unavailable.ts';
import { RETRY_SECONDS, ServiceError } from './domain/service-error.ts';
import { statusOf } from './observability/health.ts';
import type { Rooms } from './rooms.ts';
import { trackingRoutes } from './tracking/routes.ts';
import { wizard } from './wizard/wizard.ts';

/** Largest body of a request that is not an email. */
const MAX_SMALL_BODY = 262_144;
/** Longest time for a whole request to arrive: a client that sends a byte now and then must end, too. */
const REQUEST_TIMEOUT_MS = 600_000;

/** Makes the HTTP server with every surface of the service. It does not listen yet. */
export async function createServer(rooms: Rooms): Promise<FastifyInstance> {
  const { log, config, health, metrics } = rooms;
  const app = fastify({
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    bodyLimit: MAX_SMALL_BODY,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 200 },
    frameworkErrors: (error, request, reply) => answerError(error, request, reply as FastifyReply),
    clientErrorHandler: answerMalformed,
    forceCloseConnections: 'idle',
    // Listening ends first. Requests that already arrived are still answered.
    return503OnClosing: false,
    requestTimeout: REQUEST_TIMEOUT_MS,
  });
  app.decorateRequest('caller', null);
  app.decorateRequest('logged', null);
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  app.setErrorHandler(answerError);
  app.setNotFoundHandler((request, reply) =>
    answerError(
      new ServiceError(404, 'errors/resource_not_found', 'No operation has this method and path. See /docs.'),
      request,
      reply,
    ),
  );
  // Many clients send this type with every request, even without a body.
  const parseJson = app.getDefaultJsonParser('error', 'error');
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body.length === 0) done(null, undefined);
    else parseJson(request, body.toString(), done);
  });
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'buffer' },
    async (_: FastifyRequest, body: Buffer) => parseUrlEncoded(body),
  );
  app.addHook('onRequest', async (request, reply) => void reply.header('x-request-id', request.id));
  app.addHook('onSend', async (_, reply) => {
    // The client makes its next request with another process.
    if (health.isDraining) reply.header('connection', 'close');
  });
  app.addHook('onResponse', async (request, reply) => {
    const { method, routeOptions, caller, logged } = request;
    const route = routeOptions.url === undefined ? undefined : `${routeOptions.method} ${routeOptions.url}`;
    metrics.onRequest(route, reply.statusCode, reply.elapsedTime / 1_000);
    const ms = Math.round(reply.elapsedTime * 10) / 10;
    const who = caller === null ? {} : { application: caller.applicationId, key: caller.keyId };
    log.info(
      { req_id: request.id, method, route: routeOptions.url, status: reply.statusCode, ms, ...who, ...logged },
      'request',
    );
  });
  await describeApi(app, config.BASE_URL);
  app.get('/', { schema: { hide: true } }, async (_, reply) => reply.redirect('/docs'));
  app.get('/healthz', { schema: { hide: true } }, async (_, reply) => {
    const found = health.live();
    return reply.code(statusOf(found)).send(found);
  });
  await app.register(async (api) => {
    api.addHook('onRequest', authenticator(rooms));
    api.addHook('preValidation', requireBody);
    // Each room registers its own routes; a schema with an id is one component of the document.
    await api.register(keyRoutes, { rooms });
    await api.register(scopeRoutes, { rooms });
    await api.register(accountRoutes, { rooms });
    await api.register(mockRoutes, { rooms });
    await api.register(limitRoutes, { rooms });
    await api.register(domainRoutes, { rooms });
    await api.register(linkRoutes, { rooms });
    await api.register(webhookRoutes, { rooms });
    await api.register(emailRoutes, { rooms });
  });
  await app.register(tlsAsk, { rooms });
  await app.register(trackingRoutes, { rooms, prefix: '/t' });
  await app.register(wizard, { rooms });
  await app.register(dashboard, { rooms });
  return app;
}

/** Turns every error into an error object. Details of an unexpected error are in the log only. */
function answerError(error: FastifyError | Error, request: FastifyRequest, reply: FastifyReply): void {
  const known = error instanceof ServiceError ? error : knownError(error as FastifyError, request);
  if (known.status >= 500) request.log.error({ req_id: request.id, err: error }, 'request failed');
  const { status, headers, body } = problemReply(problemOf(known, request.id));
  // The rest of a body that was not read would be taken for the next request, or read forever.
  if (status === 408 || status === 413) reply.header('connection', 'close');
  // The hooks did not run if the path cannot be read.
  reply.header('x-request-id', request.id);
  if (known.retryAfter !== undefined) reply.header('retry-after', known.retryAfter);
  // The serializer of the route expects the schema of its answer; this text is final.
  void reply
    .code(status)
    .headers(headers)
    .serializer((payload: string) => payload)
    .send(body);
}

function knownError(error: FastifyError, request: FastifyRequest): ServiceError {
  const extras = { cause: error };
  if (error.code === 'FST_ERR_CTP_BODY_TOO_LARGE')
    return new ServiceError(413, 'errors/payload_too_large', 'The body is larger than this operation accepts.', extras);
  if (error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE')
    return new ServiceError(
      422,
      'errors/unprocessable_entity',
      `Content-Type: this operation does not accept it. Send ${acceptedTypes(request)}.`,
      extras,
    );
  if (error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500)
    return new ServiceError(
      400,
      'errors/malformed_request',
      'The request cannot be read: check its path, Content-Length and JSON.',
      extras,
    );
  if (isUnavailable(error))
    return new ServiceError(
      503,
      'errors/service_unavailable',
      'The service cannot reach its database now. Try again later.',
      { ...extras, retryAfter: RETRY_SECONDS },
    );
  return new ServiceError(
    500,
    'errors/unexpected_error',
    'Internal error. The server log has details under this req_id.',
    extras,
  );
}

/** Answers bytes that are not HTTP. Fastify's own answer is not an error object. */
function answerMalformed(error: Error & { readonly code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  const known =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? new ServiceError(431, 'errors/headers_too_large', 'The header fields are too large.')
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? new ServiceError(408, 'errors/request_timeout', 'The request did not arrive in time.')
        : new ServiceError(400, 'errors/malformed_request', 'The request is not valid HTTP.');
  const { status, headers, body } = problemReply(problemOf(known, randomUUID()));
  const fields = Object.entries({ ...headers, connection: 'close' }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${problemOf(known, '').title}\r\n${fields.join('')}\r\n${body}`);
}
