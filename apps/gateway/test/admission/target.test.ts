import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createRoutes } from '../../src/admission/routes.ts';
import { readTarget } from '../../src/admission/target.ts';
import { checkConfig } from '../../src/config/config.ts';
import { isRefusal } from '../../src/exchange/refusal.ts';

describe('readTarget', () => {
  it.each([
    ['/', { path: '/', query: undefined }],
    ['/a/b?c=/../%2f%zz', { path: '/a/b', query: 'c=/../%2f%zz' }],
    ['//a//b/', { path: '//a//b/', query: undefined }],
    ['/a%20b/%C3%A9?', { path: '/a%20b/%C3%A9', query: '' }],
    ['/.a/..b/c./...', { path: '/.a/..b/c./...', query: undefined }],
    ['/a%2e/%2eb', { path: '/a%2e/%2eb', query: undefined }],
    // A letter with a mark, an emoji of several characters, a slash that was encoded twice: nobody reads a dot segment.
    ['/%CC%81./e%CC%81', { path: '/%CC%81./e%CC%81', query: undefined }],
    ['/%F0%9F%91%A9%E2%80%8D%F0%9F%92%BB', { path: '/%F0%9F%91%A9%E2%80%8D%F0%9F%92%BB', query: undefined }],
    ['/a%252Fb', { path: '/a%252Fb', query: undefined }],
    ['/a?b=%00%09..%00', { path: '/a', query: 'b=%00%09..%00' }],
  ])('accepts %s unchanged', (raw, target) => {
    expect(readTarget(raw)).toEqual(target);
  });

  it.each([
    '',
    '*',
    'a',
    'http://host/a',
    '/a b',
    '/a\u00e9',
    '/a#b',
    '/a\\b',
    '/a%2fb',
    '/a%2Fb',
    '/a%5cb',
    '/a%5Cb',
    '/.',
    '/..',
    '/./a',
    '/a/..',
    '/a/../b',
    '/%2e',
    '/%2E%2e/a',
    '/.%2e/a',
    '/a/%2e.?b',
    '/a/..;x=1/b',
    '/a/..%3bx/b',
    '/%',
    '/%2',
    '/%zz',
    '/%ff',
    '/%c3%28',
    // Control characters.
    '/a%00',
    '/a%09b',
    '/a%0d%0ab',
    '/%1f',
    '/a%7f',
    '/a%c2%85',
    // Dot segments, as some server reads them.
    '/..%00',
    '/..%09/a',
    '/..%20/a',
    '/%20../a',
    '/.%20./a',
    '/..%c2%ad/a',
    '/.%c2%ad./a',
    '/..%e2%80%8b/a',
    '/..%ef%bb%bf/a',
    '/..%f3%a0%81%a1/a',
    '/%ef%bc%8e%ef%bc%8e/a',
    '/%e2%80%a4%e2%80%a4/a',
    '/%e2%80%a5/a',
    '/..%3fx/a',
    '/..%23x/a',
    '/%252e%252e/a',
    '/%25252e%25252e/a',
    '/.%252e/a',
    '/a%252f..%252fb',
    '/a%255c..%255cb',
    '/..%2509/a',
    '/%252e%252e%253b%25ff/a',
    '/a%ef%bc%8f..%ef%bc%8fb',
  ])('refuses %s with 400', (raw) => {
    const refusal = readTarget(raw);
    expect(isRefusal(refusal) && refusal.problem('id')).toMatchObject({
      status: 400,
      type: 'errors/malformed_request',
      req_id: 'id',
    });
  });
});

const routesFor = (...routes: string[]) =>
  createRoutes(checkConfig({ routes: routes.map((route) => ({ route })) }, 'test'));

describe('routes', () => {
  const routes = createRoutes(
    checkConfig(
      {
        routes: [
          { route: 'POST /api/v1/emails', account: 'query.account_id' },
          { route: 'GET /api/v1/chats/{chat_id}', account: 'path.chat_id' },
          { route: 'GET /api/v1/chats/new' },
          { route: 'GET /a:b/{constructor}/c' },
          { route: 'GET /' },
          { route: 'DELETE /slash/' },
        ],
        limits: { unlimited: true },
      },
      'test',
    ),
  );
  const nameOf = (method: string, path: string) => routes.match(method, path)?.route.name;

  it('matches exactly, literals before parameters', () => {
    expect(nameOf('POST', '/api/v1/emails')).toBe('POST /api/v1/emails');
    expect(nameOf('GET', '/api/v1/chats/7')).toBe('GET /api/v1/chats/{chat_id}');
    expect(nameOf('GET', '/api/v1/chats/new')).toBe('GET /api/v1/chats/new');
    expect(nameOf('GET', '/')).toBe('GET /');
    expect(routes.match('GET', '/a:b/x/c')?.parameters).toEqual(new Map([['constructor', 'x']]));
    expect(nameOf('DELETE', '/slash/')).toBe('DELETE /slash/');
  });

  it('decodes: an encoded letter does not avoid a limit', () => {
    expect(nameOf('POST', '/api/v1/%65mails')).toBe('POST /api/v1/emails');
    expect(routes.match('GET', '/api/v1/chats/a%20%3F%25')?.parameters.get('chat_id')).toBe('a ?%');
    expect(routes.match('GET', `/api/v1/chats/${'x'.repeat(10_000)}`)?.parameters.get('chat_id')).toHaveLength(10_000);
  });

  it.each(['%3A', '%3a', '%40', '%24', '%2C', '%7E', '%2D', '%61', '%2B', '%26', '%3D', '%21', '%27', '%28'])(
    'a literal with %s in place of the character itself is that literal, not a parameter',
    (encoded) => {
      const literal = `x${decodeURIComponent(encoded)}y`;
      const two = routesFor(`GET /v1/${literal}`, 'GET /v1/{op}');
      expect(two.match('GET', `/v1/x${encoded}y`)?.route.name).toBe(`GET /v1/${literal}`);
      expect(two.match('GET', `/v1/x${encoded}yz`)?.parameters.get('op')).toBe(`${literal}z`);
    },
  );

  it('decodes once, never twice', () => {
    const two = routesFor('GET /v1/a', 'GET /v1/{op}');
    expect(two.match('GET', '/v1/%2561')?.parameters.get('op')).toBe('%61');
    expect(two.match('GET', '/v1/%252561')?.parameters.get('op')).toBe('%2561');
    expect(two.match('GET', '/v1/100%25')?.parameters.get('op')).toBe('100%');
  });

  it('tries a parameter if the path does not match behind a literal', () => {
    const two = routesFor('GET /a/{x}/c', 'GET /a/b/d', 'GET /{y}/b/e');
    expect(two.match('GET', '/a/b/c')?.parameters).toEqual(new Map([['x', 'b']]));
    expect(two.match('GET', '/a/b/d')?.route.name).toBe('GET /a/b/d');
    expect(two.match('GET', '/a/b/e')?.parameters).toEqual(new Map([['y', 'a']]));
    expect(two.match('GET', '/a/b/f')).toBeUndefined();
  });

  it.each([
    ['GET', '/api/v1/emails'],
    ['HEAD', '/api/v1/emails'],
    ['POST', '/api/v1/emails/'],
    ['POST', '/api/V1/emails'],
    ['POST', '//api/v1/emails'],
    ['POST', '/api//v1/emails'],
    ['GET', '/api/v1/chats/'],
    ['GET', '/api/v1/chats'],
    ['GET', '/api/v1/chats/7/'],
    ['DELETE', '/slash'],
    ['BREW', '/'],
    ['__proto__', '/'],
  ])('%s %s matches no route', (method, path) => {
    expect(nameOf(method, path)).toBeUndefined();
  });

  it('matching never throws, for any target', () => {
    fc.assert(
      fc.property(fc.string(), fc.webPath(), (text, path) => {
        for (const raw of [`/${text}`, path, `/api/v1/chats/${text}`]) {
          const target = readTarget(raw);
          if (!isRefusal(target)) routes.match('GET', target.path);
        }
      }),
    );
  });
});

describe('strictSiblings', () => {
  const names = [
    'GET /api/special',
    'GET /api/{x}',
    'GET /api/{x}/',
    'GET /api/v1.0',
    'GET /a/{x}/c',
    'GET /a/b/c',
    'GET /Users/{id}',
    'GET /users/{id}',
  ];
  const file = { routes: names.map((route) => ({ route })) };
  const [strict, tolerant] = [true, false].map((strictSiblings) =>
    createRoutes(checkConfig({ ...file, strictSiblings }, 'test')),
  ) as [ReturnType<typeof createRoutes>, ReturnType<typeof createRoutes>];

  it.each([
    '/api/SPECIAL',
    '/api/Special',
    '/api/special/',
    '/api/special;a=1',
    '/api/special%3Ba=1',
    '/api/special.',
    '/api/special%20',
    '/api/%20special',
    '/api/special%3F',
    '/api/special%23x',
    '/api/special.json',
    '/api/%EF%BD%93pecial',
    '/api/%C5%BFpecial',
    '/api/spe%C2%ADcial',
    '/api/%2573pecial',
    '/api/special%252F',
    '/a/B/c',
    '/a/b;x/c',
    '/api/V1.0',
  ])('true refuses a parameter %s, which some server reads as a literal route', (path) => {
    expect(tolerant.match('GET', path)?.parameters.size).toBe(1);
    expect(strict.match('GET', path)).toBeUndefined();
  });

  it.each([
    '/api/special',
    '/api/specials',
    '/api/my.special',
    '/api/sp%C3%A9cial',
    '/api/v1',
    '/api/7',
    '/api/7/',
    '/a/1/c',
    '/Users/7',
    '/users/7',
  ])('true does not refuse %s', (path) => {
    expect(strict.match('GET', path)?.route).toEqual(tolerant.match('GET', path)?.route);
    expect(strict.match('GET', path)).toBeDefined();
  });

  it('a long path takes no quadratic time: each of these takes as long as a plain path, within a factor', () => {
    const time = (segment: string) => {
      const runs = Array.from({ length: 5 }, () => {
        const from = performance.now();
        const target = readTarget(`/api/${segment}`);
        if (!isRefusal(target)) strict.match('GET', target.path);
        return performance.now() - from;
      });
      return Math.min(...runs);
    };
    const long = (part: string) => part.repeat(16_000 / part.length);
    const plain = Math.max(0.2, time(long('%C3%A9')));
    for (const part of ['.', '%20', '%CC%81', '%25', '%2525', '%E2%80%8B', ';', '.%20', 'x.', '%EF%B7%BA', '%252e']) {
      expect({ part, factor: time(`${long(part)}x`) / plain }).toEqual({
        part,
        factor: expect.toSatisfy((f) => f < 50),
      });
    }
  });

  it('takes a wildcard without a rest for a route too: its other spellings do not pass the wildcard beside it', () => {
    const routesOf = (...names: string[]) =>
      createRoutes(checkConfig({ routes: names.map((route) => ({ route })), strictSiblings: true }, 'test'));
    const routes = routesOf('POST /pay/*', 'POST /*');
    const nameOf = (path: string) => routes.match('POST', path)?.route.name;
    expect(['/pay/', '/pay/x'].map(nameOf)).toEqual(['POST /pay/*', 'POST /pay/*']);
    expect(['/pay', '/PAY', '/PAY/', '/pay;a=1', '//pay'].map(nameOf)).toEqual(Array(5).fill(undefined));
    expect(['/', '/other', '/payments'].map(nameOf)).toEqual(Array(3).fill('POST /*'));
    const both = routesOf('POST /pay', 'POST /pay/*');
    expect(both.match('POST', '/pay')?.route.name).toBe('POST /pay');
    expect(both.match('POST', '/pay/')).toBeUndefined();
  });
});
