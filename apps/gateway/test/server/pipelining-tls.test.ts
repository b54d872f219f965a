/** The tests of pipelining.test.ts, with a client that speaks TLS. */
import { listenWithTls } from 'headgate-testbed/tls-listener';

listenWithTls();
await import('./pipelining.test.ts?tls' as string);
