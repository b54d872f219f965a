import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { inject } from 'vitest';
import { findOrInstall, foldersOnPath } from '../../../../test/support/find-program.ts';
import { freePort, until } from '../../../../test/support/redis-server.ts';
import { cleanUpLater } from './clean-up.ts';
import { startGuard } from './guard.ts';
import { listening } from './outside-servers.ts';

export interface Credentials {
  readonly username: string;
  readonly password: string;
}

const ATTEMPTS = 5;

/** Tinyproxy: a proxy of HTTP, which asks for a password. */
export async function startTinyproxy({ username, password }: Credentials): Promise<number> {
  return start('tinyproxy', 'tinyproxy-bin', (port, folder) => {
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

/** TLS in front of another proxy, with the test certificate, as a proxy of HTTPS has it. */
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
  start('microsocks', 'microsocks', (port) => ['-i', '127.0.0.1', '-p', String(port), '-u', username, '-P', password]);

/** Dante: SOCKS 4 and SOCKS 5 without a password. */
export const startDante = (): Promise<number> =>
  start('danted', 'dante-server', (port, folder) => {
    const file = join(folder, 'danted.conf');
    const rule = (name: string, lines = ''): string => `${name} pass {\n from: 0/0 to: 0/0\n ${lines}\n}`;
    const lines = [
      ...['logoutput: stderr', `internal: 127.0.0.1 port = ${port}`, 'external: 127.0.0.1'],
      ...['clientmethod: none', 'socksmethod: none', rule('client'), rule('socks', 'protocol: tcp')],
    ];
    writeFileSync(file, `${lines.join('\n')}\n`);
    return ['-f', file, '-p', join(folder, 'pid')];
  });

/** Starts a program that listens on a port of 127.0.0.1. It ends with the test file. */
async function start(
  program: string,
  debianPackage: string,
  argumentsOf: (port: number, folder: string) => readonly string[],
): Promise<number> {
  const binary = findProgram(program, debianPackage);
  const folder = mkdtempSync(join(tmpdir(), `headgate-${program}-`));
  const guard = startGuard(folder);
  cleanUpLater(() => guard.end());
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    const child = spawn(binary, argumentsOf(port, folder), { cwd: folder, stdio: 'ignore', detached: true });
    guard.watch(child);
    child.unref();
    try {
      await until(
        () => (child.exitCode === null ? accepts(port) : Promise.reject(new Error('ended'))),
        `${program} listens`,
      );
      return port;
    } catch (error) {
      // Another process may have taken the port meanwhile.
      if (attempt === ATTEMPTS) throw error;
    }
  }
}

function findProgram(name: string, debianPackage: string): string {
  const folders = [...foldersOnPath(), '/usr/sbin', '/usr/local/sbin'];
  const find = () => folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
  return findOrInstall(
    find,
    debianPackage,
    `The tests of proxies need ${name}: install it, or run them as root on Debian.`,
  );
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
      .once('connect', () => resolve(true))
      .once('error', () => resolve(false))
      .once('close', () => socket.destroy());
    socket.once('connect', () => socket.destroy());
  });
}
