import { describe, expect, it } from 'vitest';
import { createRoutes } from '../../src/admission/routes.ts';
import { checkConfig } from '../../src/config/config.ts';

const routesFor = (names: readonly string[], strictSiblings = false) => {
  const routes = createRoutes(checkConfig({ routes: names.map((route) => ({ route })), strictSiblings }, 'test'));
  return (method: string, path: string) => routes.match(method, path)?.route.name;
};

describe('a wildcard', () => {
  const nameOf = routesFor([
    'GET /files/*',
    'GET /files/new',
    'GET /files/{id}/meta',
    'GET /files/{id}/versions/*',
    'GET /{area}/*',
    'GET /x/y/z',
  ]);

  it.each([
    ['/files/a', 'GET /files/*'],
    ['/files/a/b/c', 'GET /files/*'],
    ['/files/', 'GET /files/*'],
    ['/files/a/', 'GET /files/*'],
    ['/files//a', 'GET /files/*'],
    ['/files/%6eew', 'GET /files/new'],
    ['/files/a%20b/%3F', 'GET /files/*'],
    [`/files${'/a'.repeat(7_000)}`, 'GET /files/*'],
  ])('%.30s: matches all that follows its slash, also nothing', (path, name) => {
    expect(nameOf('GET', path)).toBe(name);
  });

  it.each([
    ['/files/new', 'GET /files/new'],
    ['/files/new/x', 'GET /files/*'],
    ['/files/7/meta', 'GET /files/{id}/meta'],
    ['/files/7/meta/', 'GET /files/*'],
    ['/files/7/versions/1/2', 'GET /files/{id}/versions/*'],
    ['/files/7/versions', 'GET /files/*'],
    ['/other/7', 'GET /{area}/*'],
    ['/x/y/z', 'GET /x/y/z'],
    // Behind the literals /x/y the path does not match, so less specific routes are tried.
    ['/x/y/q', 'GET /{area}/*'],
  ])('%s: a literal wins, then a parameter, then a wildcard, at each level', (path, name) => {
    expect(nameOf('GET', path)).toBe(name);
  });

  it.each(['/files', '/Files', '/', '//'])('%s does not match: it has no segment behind it', (path) => {
    expect(nameOf('GET', path)).toBeUndefined();
  });

  it('at the root matches every path of its method', () => {
    const all = routesFor(['GET /*', 'POST /a']);
    for (const path of ['/', '/a', '//', '/a/b/']) expect(all('GET', path)).toBe('GET /*');
    for (const method of ['POST', 'DELETE', '__proto__']) expect(all(method, '/b')).toBeUndefined();
  });

  it('gives the parameters before it', () => {
    const routes = createRoutes(
      checkConfig(
        { routes: [{ route: 'GET /a/{account}/*', account: 'path.account' }], limits: { unlimited: true } },
        'test',
      ),
    );
    expect(routes.match('GET', '/a/acc_1/x/y')?.parameters).toEqual(new Map([['account', 'acc_1']]));
    expect(routes.match('GET', '/a//x/y')).toBeUndefined();
  });
});

describe('strictSiblings with a wildcard', () => {
  const names = ['GET /files/*', 'GET /files', 'GET /files/admin', 'GET /files/{id}/meta', 'HEAD /files/head'];
  const strict = routesFor(names, true);
  const tolerant = routesFor(names);

  it.each([
    ['GET', '/files/'],
    ['GET', '/files/%20'],
    ['GET', '/files/;a=1'],
    ['GET', '/files/ADMIN'],
    ['GET', '/files/admin/'],
    ['GET', '/files//admin'],
    ['GET', '/files/admin;a=1'],
    ['GET', '/files/admin.json'],
    ['GET', '/files/%2561dmin'],
    ['GET', '/files/7/META'],
    ['GET', '/files/7/meta/'],
    ['HEAD', '/files/ADMIN'],
    ['HEAD', '/files/HEAD'],
  ])('true refuses %s %s, which some server reads as another route', (method, path) => {
    expect(tolerant(method, path)).toBe('GET /files/*');
    expect(strict(method, path)).toBeUndefined();
  });

  it.each(['/files/admins', '/files/a/b/', '/files//a', '/files/A', '/files/7/meta/x'])('true allows %s', (path) => {
    expect(strict('GET', path)).toBe('GET /files/*');
  });
});

describe('HEAD', () => {
  const nameOf = routesFor(['GET /a', 'GET /b/{id}', 'HEAD /b/{id}', 'GET /b/special', 'POST /c', 'GET /d/*']);

  it('of a listed GET is matched as that route', () => {
    expect(nameOf('HEAD', '/a')).toBe('GET /a');
    expect(nameOf('HEAD', '/d/e/f')).toBe('GET /d/*');
  });

  it('has its own route, if one is listed that matches', () => {
    expect(nameOf('HEAD', '/b/7')).toBe('HEAD /b/{id}');
    expect(nameOf('HEAD', '/b/special')).toBe('HEAD /b/{id}');
    expect(nameOf('GET', '/b/special')).toBe('GET /b/special');
  });

  it('of another method is not listed, and GET is never a HEAD', () => {
    expect(nameOf('HEAD', '/c')).toBeUndefined();
    expect(routesFor(['HEAD /a'])('GET', '/a')).toBeUndefined();
  });
});
