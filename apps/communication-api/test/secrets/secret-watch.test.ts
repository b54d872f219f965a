import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { newToken } from '../../src/domain/key-token.ts';
import { dumpDatabase } from '../support/database-dump.ts';
import { DATABASES } from '../support/databases.ts';
import type { Exchange } from '../support/exchanges.ts';
import { secret } from '../support/secret.ts';
import { SecretFinder } from '../support/secret-finder.ts';
import { type SecretKind, SecretWatch } from '../support/secret-watch.ts';

const PASSWORD = secret();
const TOKEN = newToken('service', 'development');
const LINK_TOKEN = randomBytes(32).toString('hex');

describe('the finder of secrets', () => {
  const finder = new SecretFinder();
  finder.add('password', PASSWORD);
  finder.add('token', TOKEN);
  for (let i = 0; i < 200; i++) finder.add('other', newToken('service', 'development'));

  test.each<[string, (text: string) => string | Uint8Array]>([
    ['as it is', (text) => text],
    ['in a longer text', (text) => `{"a":"ä ${text}${text}"}`],
    ['as bytes', (text) => Buffer.from(`\0${text}\0`)],
    ['in hexadecimal', (text) => `\\x${Buffer.from(text).toString('hex')}`],
    ['in upper-case hexadecimal', (text) => Buffer.from(text).toString('hex').toUpperCase()],
    ...['', 'a', 'ab', 'abc'].map((before): [string, (text: string) => string] => [
      `in base64 after ${before.length} bytes`,
      (text) => Buffer.from(`${before}${text}:c`).toString('base64'),
    ]),
    ['in base64 for addresses', (text) => Buffer.from(`ü?>${text}`).toString('base64url')],
  ])('finds a secret %s', (_, write) => {
    expect(finder.find(write(PASSWORD))).toEqual(['password']);
    expect(finder.find(write(TOKEN))).toEqual(['token']);
  });

  test('finds bytes that are not text, and percent-encoded secrets', () => {
    const key = randomBytes(32);
    const other = new SecretFinder();
    other.add('key', key);
    other.add('password', 'p@ss wörd/1');
    expect(other.find(Buffer.concat([randomBytes(5), key, randomBytes(5)]))).toEqual(['key']);
    expect(other.find(`?a=${encodeURIComponent('p@ss wörd/1')}`)).toEqual(['password']);
  });

  test('finds nothing in a part of a secret, in another secret or in nothing', () => {
    const parts = [PASSWORD.slice(1), TOKEN.slice(0, -1), TOKEN.slice(0, 15), newToken('service', 'development'), ''];
    expect(parts.flatMap((part) => finder.find(part))).toEqual([]);
  });

  test('refuses a secret that would be found by chance', () => {
    expect(() => finder.add('short', 'secret')).toThrow('The secret short is shorter than 8 bytes.');
  });
});

describe('the watch over a service', () => {
  const exchange = (given: Partial<Record<'method' | 'url' | 'body', string>>, headers = {}): Exchange => ({
    ...{ method: 'GET', url: '/v2/accounts', requestHeaders: {}, requestBody: Buffer.alloc(0), status: 200, ...given },
    headers: new Map(Object.entries(headers)),
    body: Buffer.from(given.body ?? ''),
  });
  const faultsOf = (kind: SecretKind, value: string, ...exchanges: readonly Exchange[]): readonly string[] => {
    const watch = new SecretWatch();
    watch.add(kind, value);
    for (const each of exchanges) watch.checkExchange(each);
    return watch.faults;
  };
  const creation = exchange({ method: 'POST', url: '/v2/api-keys', body: `{"api_key":"${TOKEN}"}` });
  const linkCreation = exchange({ method: 'POST', url: '/v2/auth/link', body: `{"link":"a/auth/l/${LINK_TOKEN}"}` });
  const page = `/auth/l/${LINK_TOKEN}/step/login`;

  test('reports a secret in the log, once and without the secret', () => {
    const watch = new SecretWatch();
    watch.add('password', PASSWORD);
    watch.add('password', PASSWORD);
    watch.check('the log', `{"err":"${PASSWORD}"}`);
    watch.check('the log', `{"err":"${PASSWORD}"}`);
    watch.check('the log', '{"err":"none"}');
    expect([watch.size, watch.faults]).toEqual([1, ['the log contains the password 1']]);
  });

  test('an API key may be in the one answer that created it', () => {
    expect(faultsOf('API key', TOKEN, creation)).toEqual([]);
    expect(faultsOf('API key', TOKEN, creation, creation)).toEqual([
      'body of the answer 200 to POST /v2/api-keys contains the API key 1',
    ]);
    expect(faultsOf('API key', TOKEN, exchange({ body: TOKEN }))).toHaveLength(1);
    expect(faultsOf('API key', TOKEN, exchange({}, { 'x-note': TOKEN }))).toHaveLength(1);
    expect(faultsOf('API key', TOKEN, linkCreation)).toEqual([]);
  });

  test('a link token may be in the answer that created it, and on the pages of its link', () => {
    expect(faultsOf('link token', LINK_TOKEN, linkCreation)).toEqual([]);
    expect(faultsOf('link token', LINK_TOKEN, exchange({ url: page, body: page }, { location: page }))).toEqual([]);
    const elsewhere = exchange({ url: page }, { location: `https://app.example/?from=${page}` });
    expect(faultsOf('link token', LINK_TOKEN, elsewhere)).toEqual([
      'location of the answer 200 to GET /auth/l/…/step/login contains the link token 1',
    ]);
    expect(faultsOf('link token', LINK_TOKEN, exchange({ url: '/auth/l/other', body: page }))).toHaveLength(1);
  });

  test('a cookie may be in Set-Cookie only, and a CSRF token on pages of the wizard only', () => {
    const cookie = randomBytes(32).toString('base64url');
    expect(faultsOf('wizard cookie', cookie, exchange({}, { 'set-cookie': `a=${cookie}` }))).toEqual([]);
    expect(faultsOf('wizard cookie', cookie, exchange({ url: page, body: cookie }))).toHaveLength(1);
    const form = `<input type="hidden" name="_csrf" value="${cookie}">`;
    expect(faultsOf('link token', LINK_TOKEN, exchange({ url: page, body: form }))).toEqual([]);
    const leaked = [exchange({ url: page, body: form }), exchange({ body: cookie })];
    expect(faultsOf('link token', LINK_TOKEN, ...leaked)).toEqual([
      'body of the answer 200 to GET /v2/accounts contains the CSRF token 2',
    ]);
  });

  test('a state leads to the provider, and its answer to the page of its link, and both are nowhere else', () => {
    const state = randomBytes(40).toString('base64url');
    const away = { location: `https://provider.example/?redirect_uri=x&state=${state}` };
    const leaving = exchange({ method: 'POST', url: page }, away);
    const back = `/auth/callback?code=${PASSWORD}&state=${state}`;
    const onPage = {
      location: `https://connect.app.example/auth/l/${LINK_TOKEN}/callback?code=${PASSWORD}&state=${state}`,
    };
    const passedOn = exchange({ url: back }, onPage);
    expect(faultsOf('link token', LINK_TOKEN, leaving, passedOn)).toEqual([]);
    expect(faultsOf('password', PASSWORD, leaving, passedOn)).toEqual([]);
    expect(faultsOf('link token', LINK_TOKEN, leaving, exchange({ url: page, body: state }))).toHaveLength(1);
    expect(faultsOf('password', PASSWORD, exchange({ url: back, body: PASSWORD }))).toHaveLength(1);
    const elsewhere = { location: `https://evil.example/?code=${PASSWORD}` };
    expect(faultsOf('password', PASSWORD, exchange({ url: back }, elsewhere))).toHaveLength(1);
  });

  test('a password may be in no answer', () => {
    expect(faultsOf('password', PASSWORD, exchange({ url: page, body: PASSWORD }))).toHaveLength(1);
    expect(faultsOf('password', PASSWORD, { ...creation, body: Buffer.from(PASSWORD) })).toHaveLength(1);
  });
});

test.each(DATABASES)('a dump on %s has the values of every column, so a stored secret is found', async (_, open) => {
  const { db, close } = await open();
  await sql`create table leaks (id integer, a text, b bytea, c jsonb, d text[], e text)`.execute(db);
  const bytes = Buffer.from(`\xff${PASSWORD}`, 'latin1');
  const object = JSON.stringify({ deep: [PASSWORD] });
  await sql`insert into leaks values (1, ${PASSWORD}, ${bytes}, ${object}::jsonb, array[${PASSWORD}], 'none')`.execute(
    db,
  );
  const watch = new SecretWatch();
  watch.add('password', PASSWORD);
  const places = new Set<string>();
  await dumpDatabase(db, (place, value) => {
    places.add(place);
    watch.check(place, value);
  });
  expect(watch.faults).toEqual(['a', 'b', 'c', 'd'].map((column) => `leaks.${column} contains the password 1`));
  expect([...places]).toEqual(expect.arrayContaining(['leaks.id', 'leaks.e']));
  await close();
});
