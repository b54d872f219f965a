import { execFileSync } from 'node:child_process';

/** The user as which a server runs. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** The user for a server that refuses to run as root. Undefined: this process is not root, so its own user will do. */
export function serverUser(): Owner | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const idOf = (option: string, user: string): number =>
    Number(execFileSync('id', [option, user], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
  for (const user of ['postgres', 'nobody']) {
    try {
      return { uid: idOf('-u', user), gid: idOf('-g', user) };
    } catch {
      // The next user may exist.
    }
  }
  throw new Error('This server does not run as root: add a user "postgres" or "nobody" to run it.');
}
