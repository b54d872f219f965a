import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';

/** A process that ends the server and removes its files when this process ends, in whatever way. */
export interface Guard {
  watch(process: ChildProcess): void;
  /** Removes the files. */
  end(): Promise<void>;
}

/**
 * Reads the id of the process to end, or an empty line if that process has ended. The input ends when the process that
 * writes to it ends.
 */
const GUARD = `
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then
  kill -STOP "$pid"
  kill -KILL $(cat "/proc/$pid/task/$pid/children" || pgrep -P "$pid")
  kill -QUIT "$pid"
  kill -CONT "$pid"
  tries=0
  while kill -0 "$pid" && [ $tries -lt 100 ]; do sleep 0.05; tries=$((tries + 1)); done
fi
rm -rf "$1"
`;

/** @param folder the files of the server */
export function startGuard(folder: string): Guard {
  const guard = spawn('sh', ['-c', GUARD, 'sh', folder], {
    cwd: '/',
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  const input = guard.stdin as Socket;
  input.on('error', () => {});
  guard.unref();
  input.unref();
  return {
    watch(process) {
      input.write(`${process.pid ?? ''}\n`);
      process.once('exit', () => input.write('\n'));
    },
    async end() {
      if (guard.exitCode !== null) return;
      const exit = new Promise((resolve) => guard.once('exit', resolve));
      guard.ref();
      input.end();
      await exit;
    },
  };
}
