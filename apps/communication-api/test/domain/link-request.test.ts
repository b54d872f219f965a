import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { callbackUrl } from '../../src/domain/callback-url.ts';
import { startSync, syncAt } from '../../src/domain/initial-sync.ts';
import { languageOf } from '../../src/domain/language.ts';
import {
  checkExpiry,
  checkRedirectUri,
  type Installed,
  MAX_LINK_LIFETIME_MS,
  offeredBy,
  selectionOf,
  variantOf,
} from '../../src/domain/link-request.ts';
import { type Family, PROVIDER_NAMES, WILDCARDS } from '../../src/domain/providers.ts';

const NOW = Date.parse('2026-11-21T12:00:00.000Z');
const refused = (status: number, detail: RegExp) =>
  expect.objectContaining({ status, message: expect.stringMatching(detail) });

describe('variants', () => {
  test('providers asks for a new account, account_id for a reconnection', () => {
    expect(variantOf({ providers: 'mock' })).toEqual({
      kind: 'connect',
      selection: { kind: 'names', names: ['mock'] },
    });
    expect(variantOf({ account_id: 'acc_1' })).toEqual({ kind: 'reconnect', accountId: 'acc_1' });
  });

  test.each([{}, { providers: 'mock', account_id: 'acc_1' }])('both or neither is refused: %j', (request) => {
    expect(() => variantOf(request)).toThrow(refused(422, /either providers/));
  });
});

describe('selectors', () => {
  test.each(Object.entries(WILDCARDS))('%s selects the family %s', (selector, family) => {
    expect(selectionOf(selector)).toEqual({ kind: 'family', family });
  });

  test.each(PROVIDER_NAMES)('%s selects one provider, as a string and in an array', (name) => {
    expect(selectionOf(name)).toEqual({ kind: 'names', names: [name] });
    expect(selectionOf([name])).toEqual({ kind: 'names', names: [name] });
  });

  test.each([
    ['GOOGLE', /send "google"/],
    ['*:emails', /upper case/],
    ['google,imap', /one selector/],
    ['google imap', /one selector/],
    ['', /unknown/],
    ['constructor', /unknown/],
    ['gmail', /expected one of linkedin/],
    [['*'], /providers\[0\]: a wildcard/],
    [['imap', '*:EMAILS'], /providers\[1\]: a wildcard/],
    [['imap', 'Imap'], /send "imap"/],
    [['imap', 'google', 'imap'], /"imap" twice/],
    [[], /empty/],
  ])('%j is refused with the right form', (providers, detail) => {
    expect(() => selectionOf(providers)).toThrow(refused(422, detail));
  });

  test('a list of names keeps its order, whatever the names are', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.constantFrom(...PROVIDER_NAMES), { minLength: 1 }), (names) => {
        expect(selectionOf(names)).toEqual({ kind: 'names', names });
      }),
    );
  });

  test('any other text is refused, and never with an error of ours', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        fc.pre(!(PROVIDER_NAMES as readonly string[]).includes(text) && !Object.hasOwn(WILDCARDS, text));
        expect(() => selectionOf(text)).toThrow(refused(422, /^providers: /));
      }),
    );
  });
});

describe('offered providers', () => {
  const installed: readonly Installed[] = [
    { name: 'mock', supports: new Set<Family>(['emails', 'calendar', 'messaging', 'social']) },
    { name: 'imap', supports: new Set<Family>(['emails']) },
  ];

  test.each([
    ['*', ['mock', 'imap']],
    ['*:EMAILS', ['mock', 'imap']],
    ['*:SOCIAL', ['mock']],
    [
      ['imap', 'mock'],
      ['imap', 'mock'],
    ],
  ])('%j offers %j', (providers, names) => {
    expect(offeredBy(selectionOf(providers), installed)).toEqual(names);
  });

  test('a named provider that is not installed is a 403 that names the installed ones', () => {
    expect(() => offeredBy(selectionOf(['mock', 'google']), installed)).toThrow(
      refused(403, /no connector for google\. Installed here: mock, imap\./),
    );
  });

  test('a wildcard that leaves no provider is a 403', () => {
    for (const name of ['linkedin', 'whatsapp', 'telegram', 'instagram'])
      expect(() => offeredBy(selectionOf(name), installed)).toThrow(
        refused(403, new RegExp(`no connector for ${name} \\(${name}: only by a plug-in, .* PROVIDERS names\\)`)),
      );
    expect(() => offeredBy(selectionOf('*:SOCIAL'), installed.slice(1))).toThrow(refused(403, /Installed here: imap/));
    expect(() => offeredBy(selectionOf('*'), [])).toThrow(refused(403, /No provider is installed/));
  });
});

describe('expiry', () => {
  test.each([1, MAX_LINK_LIFETIME_MS])('%i ms from now is accepted', (ms) => {
    expect(() => checkExpiry(new Date(NOW + ms), NOW)).not.toThrow();
  });

  test.each([
    [0, /future/],
    [-1, /future/],
    [MAX_LINK_LIFETIME_MS + 1, /7 days/],
  ])('%i ms from now is refused', (ms, detail) => {
    expect(() => checkExpiry(new Date(NOW + ms), NOW)).toThrow(refused(422, detail));
  });
});

describe('redirect addresses', () => {
  const development = { environment: 'development', allowed: [] } as const;
  const production = { environment: 'production', allowed: [] } as const;

  test.each(['https://app.example/cb?x=1', 'https://app.example', 'https://app.example:8443/a%20b'])(
    '%s is accepted',
    (uri) => {
      expect(() => checkRedirectUri(uri, production)).not.toThrow();
    },
  );

  test.each(['http://localhost:3000/cb', 'http://127.0.0.1/', 'http://[::1]:1/', 'http://app.localhost/'])(
    '%s is accepted in development only',
    (uri) => {
      expect(() => checkRedirectUri(uri, development)).not.toThrow();
      expect(() => checkRedirectUri(uri, production)).toThrow(refused(422, /must be https/));
    },
  );

  test.each([
    ['http://app.example/', /https/],
    ['http://127.0.0.1.evil.example/', /https/],
    ['ftp://localhost/', /https/],
    ['javascript:alert(1)', /https/],
    ['/cb', /https/],
    ['https://app.example/#', /fragment/],
    ['https://app.example/#a', /fragment/],
    ['https://me@app.example/', /user name/],
    ['https://:pw@app.example/', /user name/],
  ])('%s is refused', (uri, detail) => {
    expect(() => checkRedirectUri(uri, development)).toThrow(refused(422, detail));
  });

  test('an application with a list accepts its addresses only, with any query', () => {
    const rules = { environment: 'production', allowed: ['https://app.example/cb'] } as const;
    expect(() => checkRedirectUri('https://app.example/cb?x=1', rules)).not.toThrow();
    for (const uri of [
      'https://app.example/cb/x',
      'https://app.example/',
      'https://app.example:444/cb',
      'https://a.app.example/cb',
    ])
      expect(() => checkRedirectUri(uri, rules)).toThrow(refused(422, /not in the list/));
  });
});

describe('callback', () => {
  test('existing parameters stay as they are written, and ours replace equal names', () => {
    const result = { account_id: 'acc_1', provider: 'mock' };
    expect(callbackUrl('https://app.example/cb?x=1&flag&y=%20b', result, 'u 42')).toBe(
      'https://app.example/cb?x=1&flag&y=%20b&account_id=acc_1&provider=mock&state=u+42',
    );
    expect(callbackUrl('https://app.example/cb?state=old&%61ccount_id=old&x=1', result, 'new')).toBe(
      'https://app.example/cb?x=1&account_id=acc_1&provider=mock&state=new',
    );
    expect(callbackUrl('https://app.example?state=old', result, null)).toBe(
      'https://app.example/?state=old&account_id=acc_1&provider=mock',
    );
  });

  test('an error has its type, title and detail', () => {
    const result = { error_type: 'api/already_exists', error_title: 'Account already linked', error_detail: 'acc_1' };
    expect(callbackUrl('https://app.example/cb', result, null)).toBe(
      'https://app.example/cb?error_type=api%2Falready_exists&error_title=Account+already+linked&error_detail=acc_1',
    );
  });

  test('the state comes back unchanged, whatever it is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.webQueryParameters(), (state, query) => {
        const url = callbackUrl(`https://app.example/cb?${query}`, { account_id: 'a', provider: 'mock' }, state);
        expect(new URL(url).searchParams.getAll('state')).toEqual([state]);
        expect(new URL(url).searchParams.getAll('account_id')).toEqual(['a']);
      }),
    );
  });
});

describe('initial sync', () => {
  test('a sync with a known duration depends on the time only', () => {
    const sync = startSync(NOW, 10_000);
    expect(sync).toEqual({ status: 'running', started_at: '2026-11-21T12:00:00.000Z', duration_ms: 10_000 });
    expect(syncAt(sync, NOW + 2_500)).toMatchObject({ status: 'running', progress: 0.25 });
    expect(syncAt(sync, NOW - 1)).toMatchObject({ status: 'running', progress: 0 });
    expect(syncAt(sync, NOW + 10_000)).toMatchObject({ status: 'completed', progress: 1 });
  });

  test('without a duration it is completed at once, and a stored progress is shown', () => {
    expect(syncAt(startSync(NOW), NOW)).toMatchObject({ status: 'completed', progress: 1 });
    expect(syncAt({ status: 'running', started_at: '', progress: 0.5 }, NOW)).toMatchObject({ progress: 0.5 });
  });
});

test.each([
  [undefined, 'en'],
  ['de', 'de'],
  ['de-AT,en;q=0.8', 'de'],
  ['fr,de;q=0.5,en;q=0.7', 'en'],
  ['de;q=0, en;q=0.1', 'en'],
  ['fr', 'en'],
  [';;;q=x', 'en'],
])('Accept-Language %s is the language %s', (field, language) => {
  expect(languageOf(field)).toBe(language);
});
