import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';

/** A process that ends the server and removes its files when this process ends, in whatever way. */
export interface Guard {
  watch(process: ChildProcess): void;
  /** Removes the files. */
  end(): Promise<void>;
}

/**
 * Reads the id of the process to end, or an empty line if that process already ended. The input ends when the process
 * that writes to it ends.
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

/** Kills a server and all its processes, as a crash does. Nothing is saved. */
export async function killWithChildren(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const exit = new Promise((resolve) => server.once('exit', resolve));
  server.ref();
  server.kill('SIGSTOP');
  signalChildren(server, 'SIGKILL');
  // The first process ends without saving anything, too. SIGKILL would leave zombies and shared memory behind.
  server.kill('SIGQUIT');
  server.kill('SIGCONT');
  await exit;
}

/** Sends a signal to the processes of a server's connections and tasks, which are all children of its first process. */
export function signalChildren(server: ChildProcess, signal: NodeJS.Signals): void {
  for (const pid of childrenOf(server)) {
    try {
      process.kill(pid, signal);
    } catch {
      // It ended meanwhile.
    }
  }
}

function childrenOf({ pid }: ChildProcess): number[] {
  const list =
    process.platform === 'linux'
      ? readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
      : execFileSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' });
  return list.split(/\s+/).filter(Boolean).map(Number);
}
