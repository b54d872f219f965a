import type { ConnectionOptions } from 'node:tls';
import { afterFile } from './after-file.ts';
import { createCertificate } from './certificate.ts';
import { tlsPorts } from './raw-http.ts';

let certificate: { readonly cert: string; readonly key: string } | undefined;

/**
 * Gateways that this test file starts listen with TLS, and `send` and `openRaw` use TLS for them. After it a file can
 * import the tests of another file, with a query, because files share modules.
 */
export function listenWithTls(): void {
  const { certFile: cert, keyFile: key, remove } = createCertificate();
  certificate = { cert, key };
  afterFile(() => {
    certificate = undefined;
    tlsPorts.clear();
    remove();
  });
}

export const listensWithTls = (): boolean => certificate !== undefined;

/** Further properties of the config's `listen`, besides its address. */
export const listenDefaults = (): object => (certificate === undefined ? {} : { tls: certificate });

/** Call it with the port on which a gateway with `listenDefaults` listens. */
export function onListening(port: number): void {
  const options: ConnectionOptions = { rejectUnauthorized: false };
  if (certificate !== undefined) tlsPorts.set(port, options);
}
