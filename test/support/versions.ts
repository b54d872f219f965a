import type { RequestListener } from 'node:http';
import { listen } from 'headgate-testbed/listen';
import type { SuiteServer } from './adapter-suite/subject.ts';
import { listenHttp2 } from './http2.ts';

/** A version of HTTP, and a function that serves it. */
export interface Version {
  readonly http2: boolean;
  readonly serve: (listener: RequestListener) => Promise<SuiteServer>;
}
export const HTTP1: Version = { http2: false, serve: listen };
export const HTTP2: Version = { http2: true, serve: listenHttp2 };

/** Starts a server of `POST /x`. */
export type Start = (version: Version) => SuiteServer | Promise<SuiteServer>;
