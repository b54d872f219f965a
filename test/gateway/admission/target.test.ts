import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createRoutes } from '../../../src/gateway/admission/routes.ts';
import { readTarget } from '../../../src/gateway/admission/target.ts';
import { checkConfig } from '../../../src/gateway/config/config.ts';
import { isRefusal } from '../../../src/gateway/exchange/refusal.ts';

describe('readTarget', () => {
  it.each([
    ['/', { path: '/', query: undefined }],
    ['/a/b?c=/../%2f%zz', { path: '/a/b', query: 'c=/../%2f%zz' }],
    ['//a//b/', { path: '//a//b/', query: undefined }],
    ['/a%20b/%C3%A9?', { path: '/a%20b/%C3%A9', query: '' }],
    ['/.a/..b/c./...', { path: '/.a/..b/c./...', query: undefined }],
    ['/a%2e/%2eb', { path: '/a%2e/%2eb', query: undefined }],
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
  ])('refuses %s with 400', (raw) => {
    const refusal = readTarget(raw);
    expect(isRefusal(refusal) && refusal.problem('id')).toMatchObject({
      status: 400,
      type: 'errors/malformed_request',
      req_id: 'id',
    });
  });
});

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

  it.each([
    ['GET', '/api/v1/emails'],
    ['HEAD', '/api/v1/chats/7'],
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
