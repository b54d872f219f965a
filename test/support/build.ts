import { execFileSync } from 'node:child_process';

/** Builds the package once before all tests, because the process and the package are tested as they are published. */
export function setup(): void {
  execFileSync('npm', ['run', 'build'], {
    stdio: ['ignore', 'ignore', 'inherit'],
    cwd: new URL('../..', import.meta.url),
  });
}
