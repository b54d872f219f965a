/** The tests of hostile-paths.test.ts, with a client that speaks TLS. */
import { listenWithTls } from 'headgate-testbed/tls-listener';

listenWithTls();
await import('./hostile-paths.test.ts?tls' as string);
