import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { expect, test } from 'vitest';
import { newId } from '../../src/domain/ids.ts';
import { startProgram } from '../support/program.ts';
import { startService } from '../support/service.ts';

const { url, db, application } = await startService({ AUTH_URL: 'https://auth.example.com' });
const { id: applicationId } = await application();

/** The configuration on the page, with a port of its own and certificates of Caddy's own authority. */
function caddyfile(port: number): string {
  const page = readFileSync(new URL('../../docs/domains.md', import.meta.url), 'utf8');
  const [, text = ''] = /```caddyfile\n([\s\S]*?)```/.exec(page) ?? [];
  const options = [
    'local_certs',
    'skip_install_trust',
    'admin off',
    'auto_https disable_redirects',
    `https_port ${port}`,
  ];
  return text
    .replaceAll('http://127.0.0.1:8080', url)
    .replaceAll('127.0.0.1:8080', new URL(url).host)
    .replace('{', `{\n${options.join('\n')}`);
}

/** The answer to a request on a host. `no certificate`: the proxy has ended the handshake. */
function get(port: number, host: string, path: string): Promise<string> {
  return new Promise((resolve) => {
    const socket: TLSSocket = connect({ port, host: '127.0.0.1', servername: host, rejectUnauthorized: false }, () => {
      const { subjectaltname } = socket.getPeerCertificate();
      expect(subjectaltname).toBe(`DNS:${host}`);
      socket.write(`GET ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
    });
    let answer = '';
    socket
      .on('data', (chunk: Buffer) => {
        answer += chunk.toString();
      })
      .once('error', () => resolve('no certificate'))
      .once('end', () => resolve(answer.split('\r\n')[0] ?? ''));
  });
}

test('the Caddyfile of the page gets certificates for known hosts only, and keeps /internal inside', async () => {
  const domain = { application_id: applicationId, purpose: 'auth' as const, created_at: new Date() };
  for (const [host, status] of [
    ['connect.app.example', 'verified'],
    ['new.app.example', 'pending'],
  ] as const)
    await db
      .insertInto('domains')
      .values({ ...domain, id: newId('dom', Date.now()), host, status })
      .execute();
  const port = await startProgram('caddy', 'caddy', (port, folder) => {
    const file = join(folder, 'Caddyfile');
    writeFileSync(file, caddyfile(port));
    return ['run', '--config', file, '--adapter', 'caddyfile'];
  });
  const seen: Record<string, string> = {};
  for (const host of ['connect.app.example', 'auth.example.com', 'new.app.example', 'evil.example'])
    seen[host] = await get(port, host, '/healthz');
  expect(seen).toEqual({
    'connect.app.example': 'HTTP/1.1 200 OK',
    'auth.example.com': 'HTTP/1.1 200 OK',
    'new.app.example': 'no certificate',
    'evil.example': 'no certificate',
  });
  expect(await get(port, 'connect.app.example', '/internal/tls-ask?domain=connect.app.example')).toBe(
    'HTTP/1.1 404 Not Found',
  );
  expect(await get(port, 'connect.app.example', `/auth/l/${'0'.repeat(64)}`)).toBe('HTTP/1.1 404 Not Found');
});
