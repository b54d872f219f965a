import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { ConfigIssue } from './config-error.ts';
import { isObject, type JsonObject } from './json.ts';
import { readReferencedFile } from './referenced-file.ts';

/** The listeners of a config, by their keys. */
export type ListenerName = 'listen' | 'admin' | 'decisions';

/** A listener of a config, with the content of its TLS files in place of their names. */
export interface WithTls {
  readonly listener: unknown;
  readonly issues: readonly ConfigIssue[];
}

const NAMES = ['cert', 'key', 'clientCa'] as const;
type Name = (typeof NAMES)[number];

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * Reads the TLS files of a listener, and checks that they fit together. A file that cannot be used stays a name. No
 * issue shows the content of a file.
 * @param folder the config file's folder; names are relative to it
 */
export function readTlsFiles(listener: unknown, path: ListenerName, folder: string): WithTls {
  const tls = isObject(listener) ? (listener as JsonObject).tls : undefined;
  if (!isObject(tls)) return { listener, issues: [] };
  const issues: ConfigIssue[] = [];
  const texts: Partial<Record<Name, string>> = {};
  for (const name of NAMES) {
    const value = (tls as JsonObject)[name];
    // The schema reports anything else.
    if (typeof value !== 'string' || value === '') continue;
    const content = contentOf(name, value, folder);
    if ('reason' in content) issues.push({ path: `${path}.tls.${name}`, reason: content.reason });
    else texts[name] = content.text;
  }
  const { cert, key, clientCa } = texts;
  if (cert !== undefined && key !== undefined && issues.length === 0)
    issues.push(...pairIssues(cert, key, clientCa, path));
  return { listener: { ...(listener as object), tls: { ...tls, ...texts } }, issues };
}

/** A section of a config, with the content of a file in place of its name. */
export interface WithFile {
  readonly section: unknown;
  readonly issues: readonly ConfigIssue[];
}

/** Reads the certificate authorities of the store, as {@link readTlsFiles} reads the files of a listener. */
export function readStoreCa(store: unknown, folder: string): WithFile {
  const postgres = isObject(store) ? (store as JsonObject).postgres : undefined;
  const ca = isObject(postgres) ? (postgres as JsonObject).ca : undefined;
  if (typeof ca !== 'string' || ca === '') return { section: store, issues: [] };
  const content = contentOf('clientCa', ca, folder);
  if ('reason' in content) return { section: store, issues: [{ path: 'store.postgres.ca', reason: content.reason }] };
  return { section: { ...(store as object), postgres: { ...(postgres as object), ca: content.text } }, issues: [] };
}

/** When a certificate begins and ceases to be valid, in milliseconds since 1970. */
export function validityOf(cert: string): { readonly fromMs: number; readonly untilMs: number } {
  const { validFrom, validTo } = new X509Certificate(cert);
  return { fromMs: Date.parse(validFrom), untilMs: Date.parse(validTo) };
}

function contentOf(name: Name, value: string, folder: string): { readonly text: string } | { readonly reason: string } {
  // A key in the place of a name must not be printed.
  if (value.includes('-----BEGIN')) return { reason: 'must be the name of a file, not its content' };
  const content = readReferencedFile(value, folder);
  if ('reason' in content) return content;
  const flaw = name === 'key' ? keyFlaw(content.text) : certificateFlaw(content.text);
  return flaw === undefined ? content : { reason: `the file ${JSON.stringify(value)} ${flaw}` };
}

function certificateFlaw(text: string): string | undefined {
  const certificates = text.match(PEM_CERTIFICATE) ?? [];
  return certificates.length > 0 && certificates.every(isCertificate) ? undefined : 'has no certificate in PEM';
}

function isCertificate(text: string): boolean {
  try {
    return new X509Certificate(text).serialNumber !== '';
  } catch {
    return false;
  }
}

function keyFlaw(text: string): string | undefined {
  try {
    createPrivateKey(text);
    return undefined;
  } catch (error) {
    const isEncrypted = (error as NodeJS.ErrnoException).code === 'ERR_MISSING_PASSPHRASE' || /ENCRYPTED/.test(text);
    return isEncrypted
      ? 'has an encrypted key: the gateway needs one without a passphrase'
      : 'has no private key in PEM';
  }
}

function pairIssues(cert: string, key: string, clientCa: string | undefined, path: string): ConfigIssue[] {
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key) as KeyObject)) {
    return [{ path: `${path}.tls.key`, reason: `does not belong to the certificate of ${path}.tls.cert` }];
  }
  try {
    createSecureContext({ cert, key, ...(clientCa === undefined ? {} : { ca: clientCa }) });
    return [];
  } catch (error) {
    // For example a key that is too short.
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    return [{ path: `${path}.tls`, reason: `OpenSSL does not accept these files (${code})` }];
  }
}
