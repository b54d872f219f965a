import { connect } from 'node:net';
import { createServer } from 'node:tls';
import { createCertificate } from './certificate.ts';
import { freePort, type RedisServer, startRedis } from './redis-server.ts';

/** A server with TLS on one port, and without TLS on another for the test itself. */
export interface TlsServer extends RedisServer {
  readonly tlsPort: number;
  /** The certificate that a client must trust, as a file and as text. */
  readonly certFile: string;
  readonly cert: string;
}

/** Starts Redis with TLS. If it was built without TLS, a proxy in front of it terminates TLS. */
export async function startTlsRedis(...options: string[]): Promise<TlsServer> {
  const { certFile, keyFile, cert, key, remove } = createCertificate();
  const tlsPort = await freePort();
  const files = ['--tls-cert-file', certFile, '--tls-key-file', keyFile, '--tls-ca-cert-file', certFile];
  const own = ['--tls-port', String(tlsPort), ...files, '--tls-auth-clients', 'no'];
  let closeProxy = async (): Promise<void> => {};
  const server = await startRedis(...own, ...options).catch(async () => {
    const plain = await startRedis(...options);
    closeProxy = await terminateTls(tlsPort, plain.port, { cert, key });
    return plain;
  });
  const stop = async (): Promise<void> => {
    await closeProxy();
    await server.stop();
    remove();
  };
  return { ...server, tlsPort, certFile, cert, stop };
}

async function terminateTls(
  port: number,
  target: number,
  secrets: { cert: string; key: string },
): Promise<() => Promise<void>> {
  const server = createServer(secrets, (near) => {
    const far = connect(target, '127.0.0.1');
    near.on('error', () => far.destroy()).once('close', () => far.destroy());
    far.on('error', () => near.destroy()).once('close', () => near.destroy());
    near.pipe(far).pipe(near);
  });
  server.on('tlsClientError', () => {});
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return () => new Promise((resolve) => void server.close(() => resolve()));
}
