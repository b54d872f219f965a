import { describe, it } from 'vitest';
import { adapterSuite } from '../support/adapter-suite/suite.ts';
import { listenHttp2 } from '../support/http2.ts';
import { koaSubject } from '../support/suite-koa.ts';

adapterSuite({ describe, it }, koaSubject('koa over HTTP/2', listenHttp2));
