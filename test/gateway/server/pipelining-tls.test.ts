/** The tests of pipelining.test.ts, with a client that speaks TLS. */
import { listenWithTls } from '../../support/tls-listener.ts';

listenWithTls();
await import('./pipelining.test.ts?tls' as string);
