/** The tests of draining.test.ts, with a client that speaks TLS. */
import { listenWithTls } from 'headgate-testbed/tls-listener';

listenWithTls();
await import('./draining.test.ts?tls' as string);
