import { execFileSync } from 'node:child_process';
import { delimiter } from 'node:path';

/** Updates the package lists and installs the package that is the first argument. */
const INSTALL = 'apt-get update -qq && apt-get install -y -qq --no-install-recommends "$1"';

/**
 * The result of `find`. If it returns undefined, Debian's package is installed, if this process may do so, and `find`
 * runs again.
 * @param another finds a program that does as well, if that package cannot be installed
 * @throws Error with the text `advice` if there is no result: tests that need a program must not be left out silently
 */
export function findOrInstall<T>(
  find: () => T | undefined,
  debianPackage: string,
  advice: string,
  another: () => T | undefined = () => undefined,
): T {
  const found = find();
  if (found !== undefined) return found;
  const cause = install(debianPackage);
  const installed = find() ?? another();
  if (installed === undefined) throw new Error(advice, { cause });
  return installed;
}

/** Installs a package, if this process may do so. Returns the error of an installation that failed. */
function install(debianPackage: string): unknown {
  if (process.getuid?.() !== 0 || !isOnPath('apt-get')) return undefined;
  process.stdout.write(`Installing Debian's package ${debianPackage} …\n`);
  // RUNLEVEL keeps the package from starting its own service.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  try {
    // apt-get fails while another apt-get runs, so the test runs of this machine take turns.
    execFileSync('flock', ['/var/lib/apt', 'sh', '-c', INSTALL, 'sh', debianPackage], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env,
    });
    return undefined;
  } catch (error) {
    return error;
  }
}

export function isOnPath(command: string): boolean {
  try {
    execFileSync(command, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** The folders of the PATH, for a program whose place must be known. */
export function foldersOnPath(): string[] {
  return (process.env.PATH ?? '').split(delimiter);
}
