import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The built site. */
export const DIST = fileURLToPath(new URL('../../dist', import.meta.url));

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.json': 'application/json',
};

export interface Served {
  readonly address: string;
  close(): void;
}

/** Serves the built site on loopback as a static host does: `/docs/guide` is `docs/guide.html`, and the rest is a 404. */
export async function serveSite(): Promise<Served> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    const found = fileOf(decodeURIComponent(pathname));
    const file = found ?? join(DIST, '404.html');
    response.writeHead(found === undefined ? 404 : 200, { 'content-type': TYPES[extname(file)] ?? 'text/plain' });
    response.end(readFileSync(file));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { address: `http://127.0.0.1:${port}`, close: () => void server.close() };
}

/** The file that a static host sends for a path. */
export function fileOf(path: string): string | undefined {
  const plain = join(DIST, path);
  return [plain, `${plain}.html`, join(plain, 'index.html')].find(
    (file) => existsSync(file) && statSync(file).isFile(),
  );
}
