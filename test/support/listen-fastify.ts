import type { FastifyInstance } from 'fastify';
import type { SuiteServer } from '../../src/testing/index.ts';
import { http2Client } from './http2.ts';

/**
 * An application of Fastify on a free port of loopback, over the version of HTTP that it was made for.
 * @param ca its certificate, where it speaks TLS
 */
export async function listenFastify(app: FastifyInstance, ca?: string): Promise<SuiteServer> {
  const client = app.initialConfig.http2 ? http2Client(app.server, ca) : undefined;
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  return client?.() ?? { port: Number(new URL(url).port), close: () => app.close() };
}
