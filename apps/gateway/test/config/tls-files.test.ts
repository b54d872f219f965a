/** The TLS files of a listener: they are read and checked with the config, and are relative to its folder. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCertificateOf } from 'headgate-testbed/certificate';
import { afterAll, describe, expect, it } from 'vitest';
import { parseConfig } from '../../src/config/config.ts';
import { ConfigError } from '../../src/config/config-error.ts';
import { warningsFor } from '../../src/config/warnings.ts';

const HOUR_MS = 3_600_000;
const folder = mkdtempSync(join(tmpdir(), 'headgate-tls-'));
const [good, other] = [createCertificateOf({}), createCertificateOf({})];
const [expired, early] = [createCertificateOf({ untilMs: -HOUR_MS }), createCertificateOf({ fromMs: HOUR_MS })];
afterAll(() => {
  for (const { remove } of [good, other, expired, early]) remove();
  rmSync(folder, { recursive: true });
});
const files: Record<string, string> = {
  'tls.crt': good.cert,
  'tls.key': good.key,
  'chain.crt': `${good.cert}${other.cert}`,
  'both.pem': `${good.key}${good.cert}`,
  'other.key': other.key,
  'expired.crt': expired.cert,
  'expired.key': expired.key,
  'early.crt': early.cert,
  'early.key': early.key,
  'broken.crt': good.cert.replace(/\n.{20}/, '\nAAAAAAAAAAAAAAAAAAAA'),
  'text.txt': 'no certificate',
  'empty.crt': '\n',
};
for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
mkdirSync(join(folder, 'folder'));
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const encrypted = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'p' } as const;
writeFileSync(join(folder, 'encrypted.key'), String(privateKey.export(encrypted)));

const parse = (config: object) => parseConfig(JSON.stringify(config), join(folder, 'headgate.json'));
const TLS = { cert: 'tls.crt', key: 'tls.key' };

function issuesOf(tls: unknown, listener = 'listen'): string[] {
  try {
    parse({ [listener]: { tls } });
  } catch (error) {
    if (error instanceof ConfigError) return error.issues.map(({ path, reason }) => `${path}: ${reason}`);
    throw error;
  }
  return [];
}

it.each(['listen', 'admin', 'decisions'] as const)('%s: a checked config has the content of the files', (listener) => {
  const tls = { ...TLS, clientCa: join(folder, 'chain.crt') };
  expect(parse({ [listener]: { tls } })[listener]).toMatchObject({
    tls: { cert: good.cert, key: good.key, clientCa: files['chain.crt'], minVersion: '1.2' },
  });
});

it('a chain, and one file for certificate and key, are accepted', () => {
  expect(issuesOf({ cert: 'chain.crt', key: 'tls.key', minVersion: '1.3' })).toEqual([]);
  expect(issuesOf({ cert: 'both.pem', key: 'both.pem' })).toEqual([]);
});

describe.each(['listen', 'admin', 'decisions'])('%s: a fault', (listener) => {
  it.each<[title: string, tls: unknown, ...issues: string[]]>([
    ['a missing file', { ...TLS, cert: 'none' }, 'cert: the file "none" does not exist'],
    [
      'two missing files',
      { cert: 'none', key: 'nor' },
      'cert: the file "none" does not exist',
      'key: the file "nor" does not exist',
    ],
    ['an unreadable file', { ...TLS, key: 'folder' }, 'key: the file "folder" cannot be read (EISDIR)'],
    ['an empty file', { ...TLS, cert: 'empty.crt' }, 'cert: the file "empty.crt" is empty'],
    ['no certificate', { ...TLS, cert: 'text.txt' }, 'cert: the file "text.txt" has no certificate in PEM'],
    ['a key as certificate', { ...TLS, cert: 'tls.key' }, 'cert: the file "tls.key" has no certificate in PEM'],
    ['a broken certificate', { ...TLS, cert: 'broken.crt' }, 'cert: the file "broken.crt" has no certificate in PEM'],
    ['a certificate as key', { ...TLS, key: 'tls.crt' }, 'key: the file "tls.crt" has no private key in PEM'],
    [
      'an encrypted key',
      { ...TLS, key: 'encrypted.key' },
      'key: the file "encrypted.key" has an encrypted key: the gateway needs one without a passphrase',
    ],
    [
      "another certificate's key",
      { ...TLS, key: 'other.key' },
      'key: does not belong to the certificate of LISTENER.tls.cert',
    ],
    [
      'a clientCa without certificates',
      { ...TLS, clientCa: 'text.txt' },
      'clientCa: the file "text.txt" has no certificate in PEM',
    ],
    ['the content in place of a name', { ...TLS, key: good.key }, 'key: must be the name of a file, not its content'],
    ['no key', { cert: 'tls.crt' }, 'key: is missing (expected a string)'],
    ['an old version', { ...TLS, minVersion: '1.1' }, 'minVersion: must be one of "1.2", "1.3", got "1.1"'],
    [
      'an unknown option',
      { ...TLS, certificate: 'x' },
      'certificate: unknown option (expected cert, key, clientCa or minVersion)',
    ],
  ])('%s', (_title, tls, ...issues) => {
    const found = issuesOf(tls, listener);
    expect(found).toEqual(issues.map((issue) => `${listener}.tls.${issue.replace('LISTENER', listener)}`));
    expect(found.join()).not.toContain('BEGIN');
  });
});

it('a certificate that has expired, or is not valid yet, is a warning', () => {
  const warnings = (cert: string, key: string) =>
    warningsFor(parse({ listen: { tls: { cert, key } } })).filter(({ path }) => path === 'listen.tls.cert');
  expect(warnings('tls.crt', 'tls.key')).toEqual([]);
  expect(warnings('expired.crt', 'expired.key')).toEqual([
    { path: 'listen.tls.cert', reason: expect.stringMatching(/^the certificate expired at 2\d{3}-/) },
  ]);
  expect(warnings('early.crt', 'early.key')).toEqual([
    { path: 'listen.tls.cert', reason: expect.stringMatching(/^the certificate is not valid before 2\d{3}-/) },
  ]);
});

it('an admin listener that other machines can reach is no warning if they need a certificate', () => {
  const paths = (tls?: object) =>
    warningsFor(parse({ admin: { host: '0.0.0.0', ...(tls && { tls }) } })).map(({ path }) => path);
  expect(paths()).toContain('admin.host');
  expect(paths(TLS)).toContain('admin.host');
  expect(paths({ ...TLS, clientCa: 'tls.crt' })).not.toContain('admin.host');
});
