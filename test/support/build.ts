import { execFileSync } from 'node:child_process';

/** Builds the package once before any test: the process and the packed files are tested as they are shipped. */
export function setup(): void {
  execFileSync('npm', ['run', 'build'], {
    stdio: ['ignore', 'ignore', 'inherit'],
    cwd: new URL('../..', import.meta.url),
  });
}
