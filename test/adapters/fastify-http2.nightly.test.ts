import fastify from 'fastify';
import { describe, it } from 'vitest';
import { adapterSuite } from '../support/adapter-suite/suite.ts';
import { fastifySubject } from '../support/suite-fastify.ts';

adapterSuite(
  { describe, it },
  fastifySubject('fastify over HTTP/2', () => fastify({ http2: true, forceCloseConnections: true }) as never),
);
