import { describe, it } from 'vitest';
import { adapterSuite } from '../../support/adapter-suite/suite.ts';
import { listenWeb } from '../../support/listen-web.ts';
import { h3Subject } from '../../support/suite-h3.ts';

adapterSuite(
  { describe, it },
  h3Subject('h3', (app) => listenWeb((request) => app.fetch(request))),
);
