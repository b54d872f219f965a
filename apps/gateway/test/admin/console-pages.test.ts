/** The files of the console, as a client without a browser gets them. */
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { type Ask, send } from 'headgate-testbed/raw-http';
import { beforeAll, describe, expect, it } from 'vitest';
import { ADMIN, type AdminGateway, startAdminGateway } from '../support/admin.ts';
import { expectProblem } from '../support/gateway.ts';

const NOWHERE = 'http://127.0.0.1:9';
let gateway: AdminGateway;
let page: string;

beforeAll(async () => {
  gateway = await startAdminGateway(NOWHERE);
  page = (await get('/')).text;
});

const get = (path: string, headers: Ask['headers'] = {}) => send(gateway.adminPort, { path, headers });
/** The addresses in the page. */
const files = () => [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => `/${path}`);

describe('the console', () => {
  it('needs no token, and has no secret: the page is the same for everybody', async () => {
    const { status, headers } = await get('/');
    expect(status).toBe(200);
    expect(headers).toMatchObject({ 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' });
    for (const { name } of ADMIN.tokens) expect(page).not.toContain(name);
    expect((await get('/?x=1', { authorization: 'Bearer wrong' })).text).toBe(page);
  });

  it('loads nothing from elsewhere, and its policy allows nothing else', async () => {
    const { headers } = await get('/');
    expect(headers['content-security-policy']).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    );
    expect(page).not.toMatch(/\/\/|<script>|<style|style=| on[a-z]+=/);
    expect(
      files()
        .map((path) => path.replace(/-[A-Z\d]{8}\./, '.'))
        .sort(),
    ).toEqual(['/assets/console.css', '/assets/console.js', '/assets/icon.svg']);
    for (const path of files()) {
      const file = await get(path);
      expect([path, file.status, file.headers['cache-control']]).toEqual([
        path,
        200,
        'public, max-age=31536000, immutable',
      ]);
      expect(file.headers['x-content-type-options']).toBe('nosniff');
    }
  });

  it('is compressed as the client likes, and not sent again', async () => {
    const [script = ''] = files().filter((path) => path.endsWith('.js'));
    const plain = await get(script);
    expect(plain.headers['content-encoding']).toBe(undefined);
    const brotli = await get(script, { 'accept-encoding': 'gzip, deflate, br' });
    expect(brotli.headers).toMatchObject({ 'content-encoding': 'br', vary: 'accept-encoding' });
    expect(brotliDecompressSync(brotli.body).toString()).toBe(plain.text);
    const gzip = await get(script, { 'accept-encoding': 'br;q=0, gzip' });
    expect(gzip.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(gzip.body).toString()).toBe(plain.text);
    const again = await get(script, { 'if-none-match': plain.headers.etag });
    expect([again.status, again.text]).toEqual([304, '']);
    const head = await send(gateway.adminPort, { method: 'HEAD', path: '/' });
    expect([head.status, head.text]).toEqual([200, '']);
  });

  it('is small: at most 30 kB before the first page, and 75 kB with its charts and every page', async () => {
    const { assets } = await import('#console');
    const first = new Set(files());
    // A script also loads what it imports, but not yet what it imports by a call.
    for (const path of first)
      for (const [, name] of (await get(path)).text.matchAll(/(?:from|import)"\.\/([^"]+)"/g))
        first.add(`/assets/${name}`);
    const sizeOf = async (path: string) => (await get(path, { 'accept-encoding': 'gzip' })).body.length;
    const total = async (paths: readonly string[]) =>
      (await Promise.all(['/', ...paths].map(sizeOf))).reduce((sum, size) => sum + size);
    expect(await total([...first])).toBeLessThanOrEqual(30_000);
    expect(await total(assets.map(({ path }) => `/${path}`).filter((path) => path !== '/'))).toBeLessThanOrEqual(
      75_000,
    );
    expect(first.size).toBeLessThan(assets.length - 1);
  });

  it('has no other files, and no name but its own', async () => {
    for (const path of ['/assets/', '/assets/none.js', '/assets/../package.json', '/assets/%2e%2e/x'])
      expectProblem(await get(path), 404, 'errors/resource_not_found');
    expectProblem(await get('/', { host: 'evil.example' }), 403, 'errors/resource_access_restricted');
    expectProblem(await send(gateway.adminPort, { method: 'POST', path: '/' }), 404, 'errors/resource_not_found');
  });

  it('is off without tokens, and with `console: false`', async () => {
    const without = await startAdminGateway(NOWHERE, { admin: { ...ADMIN, tokens: [] } });
    expectProblem(await send(without.adminPort, { path: '/' }), 404, 'errors/resource_not_found');
    const off = await startAdminGateway(NOWHERE, { admin: { ...ADMIN, console: false } });
    expectProblem(await send(off.adminPort, { path: '/' }), 404, 'errors/resource_not_found');
    expect((await off.admin('GET', '/v1/status')).status).toBe(200);
  });
});
