import { toNodeHandler } from 'h3';
import { listen } from 'headgate-testbed/listen';
import { describe, it } from 'vitest';
import { adapterSuite } from '../support/adapter-suite/suite.ts';
import { h3Subject } from '../support/suite-h3.ts';

adapterSuite(
  { describe, it },
  h3Subject('h3', (app) => listen(toNodeHandler(app) as never)),
);
