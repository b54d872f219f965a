/** The tests of malformed-http.test.ts, with a client that speaks TLS. */
import { listenWithTls } from 'headgate-testbed/tls-listener';

listenWithTls();
await import('./malformed-http.test.ts?tls' as string);
