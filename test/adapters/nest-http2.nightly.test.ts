import { describe, it } from 'vitest';
import { adapterSuite } from '../support/adapter-suite/suite.ts';
import { listenFastify } from '../support/listen-fastify.ts';
import { nestOnFastify, nestSubject } from '../support/suite-nest.ts';

adapterSuite(
  { describe, it },
  nestSubject('nest on fastify over HTTP/2', () => nestOnFastify({ http2: true }), listenFastify),
);
