import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { inject } from 'vitest';
import { listening } from './outside-servers.ts';
import { startProgram } from './program.ts';

export interface Credentials {
  readonly username: string;
  readonly password: string;
}

/** Tinyproxy: a proxy of HTTP, which asks for a password. */
export async function startTinyproxy({ username, password }: Credentials): Promise<number> {
  return startProgram('tinyproxy', 'tinyproxy-bin', (port, folder) => {
    const file = join(folder, 'tinyproxy.conf');
    const lines = [
      `Port ${port}`,
      'Listen 127.0.0.1',
      'Timeout 60',
      'MaxClients 20',
      `BasicAuth ${username} ${password}`,
    ];
    writeFileSync(file, `${lines.join('\n')}\n`);
    return ['-d', '-c', file];
  });
}

/** TLS in front of another proxy, with the test certificate, like an HTTPS proxy. */
export async function startTlsFront(proxyPort: number): Promise<number> {
  const server = createServer({ ...inject('certificate') }, (near) => {
    const far = connect(proxyPort, '127.0.0.1');
    near.on('error', () => far.destroy()).once('close', () => far.destroy());
    far.on('error', () => near.destroy()).once('close', () => near.destroy());
    near.pipe(far).pipe(near);
  });
  return (await listening(server)).port;
}

/** Microsocks: SOCKS 5, which asks for a password. */
export const startMicrosocks = ({ username, password }: Credentials): Promise<number> =>
  startProgram('microsocks', 'microsocks', (port) => [
    '-i',
    '127.0.0.1',
    '-p',
    String(port),
    '-u',
    username,
    '-P',
    password,
  ]);

/** Dante: SOCKS 4 and SOCKS 5 without a password. */
export const startDante = (): Promise<number> =>
  startProgram('danted', 'dante-server', (port, folder) => {
    const file = join(folder, 'danted.conf');
    const rule = (name: string, lines = ''): string => `${name} pass {\n from: 0/0 to: 0/0\n ${lines}\n}`;
    const lines = [
      ...['logoutput: stderr', `internal: 127.0.0.1 port = ${port}`, 'external: 127.0.0.1'],
      ...['clientmethod: none', 'socksmethod: none', rule('client'), rule('socks', 'protocol: tcp')],
    ];
    writeFileSync(file, `${lines.join('\n')}\n`);
    return ['-f', file, '-p', join(folder, 'pid')];
  });
