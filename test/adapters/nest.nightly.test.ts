import { ExpressAdapter } from '@nestjs/platform-express';
import { listen } from 'headgate-testbed/listen';
import { describe, it } from 'vitest';
import { adapterSuite } from '../support/adapter-suite/suite.ts';
import { listenFastify } from '../support/listen-fastify.ts';
import { nestOnFastify, nestSubject } from '../support/suite-nest.ts';

adapterSuite({ describe, it }, nestSubject('nest on fastify', nestOnFastify, listenFastify));
adapterSuite(
  { describe, it },
  nestSubject('nest on express, by its interceptor', () => new ExpressAdapter(), listen, 'interceptor'),
);
