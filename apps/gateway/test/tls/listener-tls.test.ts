import { afterFile } from 'headgate-testbed/after-file';
import { createCertificate } from 'headgate-testbed/certificate';
import { expect, it } from 'vitest';
import { ListenerTls } from '../../src/tls/listener-tls.ts';
import { createHttpServer, type TlsMaterial } from '../../src/tls/tls-server.ts';

const certificates = [createCertificate(), createCertificate()];
afterFile(() => {
  for (const { remove } of certificates) remove();
});
const [first, second] = certificates.map(({ cert, key }): TlsMaterial => ({ cert, key, minVersion: '1.2' })) as [
  TlsMaterial,
  TlsMaterial,
];

function listenerWith(material: TlsMaterial | undefined) {
  const expiries: number[] = [];
  const metrics = { onCertificate: (_: string, expiresAtMs: number) => void expiries.push(expiresAtMs) };
  const tls = new ListenerTls('admin', material, { log: { handshakeFailed: () => {} }, metrics });
  return { tls, expiries, server: createHttpServer({}, tls.options) };
}

it('a certificate is reported when it comes into use', () => {
  const { tls, server, expiries } = listenerWith(first);
  expect(expiries).toHaveLength(1);
  expect(tls.renew(server, second)).toEqual([]);
  expect(expiries).toHaveLength(2);
});

it('what needs a restart is named at every reload until then, and is not reported as in use', () => {
  const { tls, server, expiries } = listenerWith(first);
  const mutual = { ...second, clientCa: second.cert };
  for (const wanted of [mutual, mutual, undefined, undefined]) {
    expect(tls.renew(server, wanted)).toEqual(['admin.tls']);
  }
  expect(expiries).toHaveLength(1);
  expect(tls.renew(server, second)).toEqual([]);
});

it('without TLS, TLS needs a restart; a listener that does not exist needs nothing of its own', () => {
  const { tls, server, expiries } = listenerWith(undefined);
  expect(tls.options).toBeUndefined();
  expect(tls.renew(server, first)).toEqual(['admin.tls']);
  expect(tls.renew(server, undefined)).toEqual([]);
  expect(tls.renew(undefined, first)).toEqual([]);
  expect(expiries).toEqual([]);
});
