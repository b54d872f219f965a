import type { FastifyInstance } from 'fastify';
import type { SuiteServer } from './adapter-suite/subject.ts';
import { http2Client } from './http2.ts';

/**
 * Starts a Fastify application on a free port of 127.0.0.1, over the HTTP version for which it was created.
 * @param ca its certificate, if it uses TLS
 */
export async function listenFastify(app: FastifyInstance, ca?: string): Promise<SuiteServer> {
  const client = app.initialConfig.http2 ? http2Client(app.server, ca) : undefined;
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  return client?.() ?? { port: Number(new URL(url).port), close: () => app.close() };
}
