import { connect } from 'node:net';
import { createServer } from 'node:tls';
import { createCertificate } from './certificate.ts';
import { freePort, type RedisServer, startRedis } from './redis-server.ts';

/** A server that speaks TLS on one port, and plainly on another for the test's own questions. */
export interface TlsServer extends RedisServer {
  readonly tlsPort: number;
  /** The certificate that a client has to trust: its file, and its text. */
  readonly certFile: string;
  readonly cert: string;
}

/** The server's own TLS; where it was built without, TLS that ends in front of it. */
export async function startTlsRedis(...options: string[]): Promise<TlsServer> {
  const { certFile, keyFile, cert, key, remove } = createCertificate();
  const tlsPort = await freePort();
  const files = ['--tls-cert-file', certFile, '--tls-key-file', keyFile, '--tls-ca-cert-file', certFile];
  const own = ['--tls-port', String(tlsPort), ...files, '--tls-auth-clients', 'no'];
  let ending = async (): Promise<void> => {};
  const server = await startRedis(...own, ...options).catch(async () => {
    const plain = await startRedis(...options);
    ending = await endTls(tlsPort, plain.port, { cert, key });
    return plain;
  });
  const stop = async (): Promise<void> => {
    await ending();
    await server.stop();
    remove();
  };
  return { ...server, tlsPort, certFile, cert, stop };
}

async function endTls(
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
