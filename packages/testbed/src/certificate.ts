import { generateKeyPairSync, sign } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * A new self-signed certificate for 127.0.0.1. The repository then contains no key, and no certificate that expires.
 */
export interface Certificate {
  readonly certFile: string;
  readonly keyFile: string;
  readonly cert: string;
  readonly key: string;
  remove(): void;
}

const ECDSA_WITH_SHA256 = '2a8648ce3d040302';
const COMMON_NAME = '550403';
const BASIC_CONSTRAINTS = '551d13';
const SUBJECT_ALT_NAME = '551d11';
const DAY_MS = 86_400_000;

/** @param hosts names for which the certificate is valid too, such as `localhost` or `*.example.test` */
export const createCertificate = (...hosts: readonly string[]): Certificate => createCertificateOf({ hosts });

/** By default the certificate is valid from a day ago until a day from now. */
export function createCertificateOf({
  hosts = [],
  fromMs = -DAY_MS,
  untilMs = DAY_MS,
}: {
  readonly hosts?: readonly string[];
  readonly fromMs?: number;
  readonly untilMs?: number;
}): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = sequence(oid(ECDSA_WITH_SHA256));
  const name = sequence(der(0x31, sequence(oid(COMMON_NAME), der(0x0c, Buffer.from('headgate test')))));
  const extensions = sequence(
    extension(BASIC_CONSTRAINTS, sequence(der(0x01, Buffer.from([0xff])))),
    extension(
      SUBJECT_ALT_NAME,
      sequence(der(0x87, Buffer.from([127, 0, 0, 1])), ...hosts.map((host) => der(0x82, Buffer.from(host)))),
    ),
  );
  const signed = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    algorithm,
    name,
    sequence(time(fromMs), time(untilMs)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, extensions),
  );
  const certificate = sequence(signed, algorithm, bits(sign('sha256', signed, privateKey)));
  // No empty line at the end: OpenSSL would refuse the file.
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? [];
  const cert = `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
  const key = String(privateKey.export({ type: 'pkcs8', format: 'pem' }));
  const folder = mkdtempSync(join(tmpdir(), 'headgate-certificate-'));
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key, { mode: 0o600 });
  return { certFile, keyFile, cert, key, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Encodes ASN.1 in DER, as in a certificate: tag, length, content. */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const head = length < 0x80 ? [tag, length] : [tag, 0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from(head), content]);
}

const sequence = (...parts: readonly Buffer[]): Buffer => der(0x30, ...parts);
const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'));
const bits = (bytes: Buffer): Buffer => der(0x03, Buffer.from([0]), bytes);
const extension = (id: string, value: Buffer): Buffer => sequence(oid(id), der(0x04, value));

function time(fromNowMs: number): Buffer {
  const digits = new Date(Date.now() + fromNowMs).toISOString().replace(/\D/g, '');
  return der(0x17, Buffer.from(`${digits.slice(2, 14)}Z`));
}
