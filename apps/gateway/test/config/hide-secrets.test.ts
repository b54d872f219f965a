/** No fault and no warning of a config shows a secret, wherever in the file it stands. */
import { describe, expect, it } from 'vitest';
import { checkConfig, parseConfig } from '../../src/config/config.ts';
import { ConfigError } from '../../src/config/config-error.ts';
import { hideSecrets } from '../../src/config/hide-secrets.ts';
import { jsonSchema } from '../../src/config/schema.ts';
import { warningsFor } from '../../src/config/warnings.ts';

const RANDOM = [
  'hg_live_0123456789abcdef',
  '3f8a1c5e-7b2d-4e9a-8c6f-0d1e2f3a4b5c',
  'q83vEjRWeJC/Eh+0mZ7d3w==',
  'A0'.repeat(60),
  'pk-Q7ZwXv9TbN2rLmKc',
];

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | false;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
}

type Path = readonly (string | number)[];

/** Every place of the config; `x` stands for a name of the operator's choice. */
function placesOf({ properties = {}, additionalProperties, items, anyOf = [] }: Schema, path: Path = []): Path[] {
  return [
    path,
    ...Object.entries(properties).flatMap(([name, schema]) => placesOf(schema, [...path, name])),
    ...(additionalProperties ? placesOf(additionalProperties, [...path, 'x']) : []),
    ...(items ? placesOf(items, [...path, 0]) : []),
    ...anyOf.flatMap((schema) => placesOf(schema, path).slice(1)),
  ];
}

const PLACES = [...new Set(placesOf(JSON.parse(jsonSchema()) as Schema).map((path) => JSON.stringify(path)))].map(
  (path) => JSON.parse(path) as Path,
);

/** A config with only this value. */
function configWith(path: Path, value: unknown): unknown {
  return path.reduceRight<unknown>((inner, name) => (name === 0 ? [inner] : { [name]: inner }), value);
}

/** The text of all faults, or of all warnings if there is no fault. */
function saidAbout(config: unknown): string {
  try {
    return warningsFor(checkConfig(config, 'test'))
      .map(({ path, reason }) => `${path}: ${reason}`)
      .join('\n');
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
}

it('knows the places', () => {
  expect(PLACES.length).toBeGreaterThan(100);
  expect(PLACES).toContainEqual(['admin', 'tokens', 0, 'role']);
  expect(PLACES).toContainEqual(['limits', 'accounts', 'x', 'routes', 'x', 0, 'max']);
});

describe.each(RANDOM)('%s', (secret) => {
  it.each<[string, (text: string) => unknown]>([
    ['a text', (text) => text],
    ['a part of a text', (text) => `GET ${text} {x`],
    ['a part of a source', (text) => `header.${text} `],
    ['a password of a URL', (text) => `http://user:${text}@host:x`],
    ['a variable', (text) => ['$', `{${text}}`].join('')],
    ['a list', (text) => [text]],
    ['a value of an object', (text) => ({ token: text, env: text, x: text })],
    ['a reference to a variable', (text) => ({ env: text })],
    ['a reference to a file', (text) => ({ file: text })],
  ])('as %s is not shown, whatever its place', (_title, put) => {
    for (const path of PLACES) {
      const said = saidAbout(configWith(path, put(secret)));
      // An error shows the first 80 characters of a long text.
      expect({ path, said }).toEqual({ path, said: expect.not.stringContaining(secret.slice(0, 20)) });
    }
  });

  it('as the name of an unknown option is not shown', () => {
    for (const config of [{ [secret]: 1 }, { keys: [{ [secret]: 1 }] }, { admin: { [secret]: 1 } }])
      expect(saidAbout(config)).not.toContain(secret);
    expect(() => parseConfig(`{"${secret}": 1, "${secret}": 2}`, 'test')).toThrow('"…" appears twice in one object');
  });
});

it('a credential shows none of its values, not even a short one', () => {
  const isOfCredential = ([first, second]: Path) => first === 'keys' || (first === 'admin' && second === 'tokens');
  // A reference names a variable or a file, and the operator must read which one is missing.
  const places = PLACES.filter((path) => isOfCredential(path) && !['env', 'file'].includes(String(path.at(-1))));
  expect(places.length).toBeGreaterThan(10);
  for (const path of places)
    for (const value of ['hunter2', ['hunter2'], { token: ['hunter2'] }, 'hunter2 with spaces'])
      expect(saidAbout(configWith(path, value))).not.toContain('hunter2');
});

describe('what helps the operator stays', () => {
  it.each([
    'the environment variable JANE_TOKEN_SHA256_FILE is not set',
    'the file "/run/secrets/grafana-admin-token" does not exist',
    'must be a method and a path, such as "POST /api/v1/emails", got "POST api/v1/organization-memberships"',
    'unknown option, did you mean "maxUpstreamConnections"?',
    'must be a time in ISO 8601 with its offset, such as "2027-01-01T00:00:00Z"',
    'browsers write it as "https://app2.example.com", got "https://App2.example.com"',
    'OpenSSL does not accept these files (ERR_OSSL_X509_KEY_VALUES_MISMATCH)',
  ])('%s', (text) => expect(hideSecrets(text)).toBe(text));

  it('the readable part of a path', () => {
    expect(hideSecrets('the file "/run/3f8a1c5e7b2d4e9a/token" is empty')).toBe('the file "/run/…/token" is empty');
  });
});
