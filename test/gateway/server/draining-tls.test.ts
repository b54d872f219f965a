/** The tests of draining.test.ts, with a client that speaks TLS. */
import { listenWithTls } from '../../support/tls-listener.ts';

listenWithTls();
await import('./draining.test.ts?tls' as string);
