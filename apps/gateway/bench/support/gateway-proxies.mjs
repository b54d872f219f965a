// A process of the topic gateway: one proxy that is written with Node. Its argument names it.
import { Agent, createServer, request as sendRequest } from 'node:http';
import { answerWith } from 'headgate-bench/member';
import { requirePeer } from 'headgate-bench/peers';
import pino from 'pino';
import { Pool } from 'undici';
import { MANY } from './gateway-settings.mjs';

process.env.NODE_ENV = 'production';
const { proxy, upstream } = JSON.parse(process.argv[2]);
const MINUTE_MS = 60_000;
const CONNECTIONS = 256;

const listen = (server) =>
  new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server.address().port)));
const accountOf = (request) => request.query.account_id;

/** One line per request, to the same place as headgate's, with the settings of pino's own page about speed. */
function createLog() {
  const log = pino({ base: null }, pino.destination({ dest: '/dev/null', sync: false, minLength: 4_096 }));
  return (method, route, status, ms) => log.info({ method, route, status, ms }, 'request');
}

/** The least that a proxy on Node needs: no key, no limit, no log, no deadline, no bound. */
function floor() {
  const pool = new Pool(upstream, { connections: CONNECTIONS });
  return listen(
    createServer((request, response) => {
      const { url: path, method, headers } = request;
      const body = 'content-length' in headers || 'transfer-encoding' in headers ? request : null;
      pool.dispatch(
        { path, method, headers, body },
        {
          onRequestStart(controller) {
            // Otherwise a client that leaves in the middle would keep a connection of the pool for ever.
            response.once('close', () => {
              if (!response.writableFinished) controller.abort(new Error('the client has left'));
            });
          },
          onResponseStart: (_, status, fields) => response.writeHead(status, fields),
          onResponseData(controller, chunk) {
            if (response.write(chunk)) return;
            controller.pause();
            response.once('drain', () => controller.resume());
          },
          onResponseEnd: () => response.end(),
          onResponseError: (_, error) => response.destroy(error),
        },
      );
    }),
  );
}

/** The same with the HTTP client of Node in place of undici. */
function nodeFloor() {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const { hostname, port } = new URL(upstream);
  return listen(
    createServer((request, response) => {
      const { url: path, method, headers } = request;
      const sent = sendRequest({ agent, hostname, port, path, method, headers }, (answer) => {
        response.writeHead(answer.statusCode, answer.rawHeaders);
        answer.pipe(response);
      });
      sent.on('error', (error) => response.destroy(error));
      request.pipe(sent);
    }),
  );
}

async function fastify() {
  const { default: create } = await import('fastify');
  const app = create();
  const log = createLog();
  app.addHook('onResponse', async (request, reply) => {
    log(request.method, request.routeOptions.url, reply.statusCode, reply.elapsedTime);
  });
  await app.register(requirePeer('@fastify/rate-limit'), { max: MANY, timeWindow: MINUTE_MS, keyGenerator: accountOf });
  await app.register(requirePeer('@fastify/http-proxy'), { upstream, undici: { connections: CONNECTIONS } });
  await app.listen({ host: '127.0.0.1', port: 0 });
  return app.server.address().port;
}

async function express() {
  const { default: create } = await import('express');
  const { createProxyMiddleware } = requirePeer('http-proxy-middleware');
  const { rateLimit } = requirePeer('express-rate-limit');
  const app = create();
  const log = createLog();
  app.use((request, response, next) => {
    const began = performance.now();
    response.once('finish', () => log(request.method, request.path, response.statusCode, performance.now() - began));
    next();
  });
  app.use(rateLimit({ limit: MANY, windowMs: MINUTE_MS, keyGenerator: accountOf }));
  // Without an agent it would open a connection for each request.
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  app.use(createProxyMiddleware({ target: upstream, agent }));
  return listen(createServer(app));
}

const port = await { floor, nodeFloor, fastify, express }[proxy]();
answerWith(() => ({ port, pid: process.pid }));
