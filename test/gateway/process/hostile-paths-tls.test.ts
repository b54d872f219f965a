/** The tests of hostile-paths.test.ts, with a client that speaks TLS. */
import { listenWithTls } from '../../support/tls-listener.ts';

listenWithTls();
await import('./hostile-paths.test.ts?tls' as string);
