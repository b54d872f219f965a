import { listen } from 'headgate-testbed/listen';
import { describe, it } from 'vitest';
import { adapterSuite } from '../support/adapter-suite/suite.ts';
import { koaSubject } from '../support/suite-koa.ts';

adapterSuite({ describe, it }, koaSubject('koa', listen));
