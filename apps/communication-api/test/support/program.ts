import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findOrInstall, foldersOnPath } from 'headgate-testbed/find-program';
import { startGuard } from 'headgate-testbed/guard';
import { freePort, until } from 'headgate-testbed/redis-server';
import { cleanUpLater } from './clean-up.ts';

const ATTEMPTS = 5;

/** Starts a program that listens on a port of 127.0.0.1. It ends with the test file. */
export async function startProgram(
  program: string,
  debianPackage: string,
  argumentsOf: (port: number, folder: string) => readonly string[],
): Promise<number> {
  const binary = findProgram(program, debianPackage);
  const folder = mkdtempSync(join(tmpdir(), `headgate-${program}-`));
  const guard = startGuard(folder);
  // Some programs store things there.
  const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  cleanUpLater(() => guard.end());
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    const child = spawn(binary, argumentsOf(port, folder), { cwd: folder, env, stdio: 'ignore', detached: true });
    guard.watch(child);
    child.unref();
    try {
      await until(
        () => (child.exitCode === null ? accepts(port) : Promise.reject(new Error('ended'))),
        `${program} listens`,
      );
      return port;
    } catch (error) {
      // Another process may take the port meanwhile.
      if (attempt === ATTEMPTS) throw error;
    }
  }
}

function findProgram(name: string, debianPackage: string): string {
  const folders = [...foldersOnPath(), '/usr/sbin', '/usr/local/sbin'];
  const find = () => folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
  return findOrInstall(find, debianPackage, `These tests need ${name}: install it, or run them as root on Debian.`);
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
