import { spawn } from 'node:child_process';

/** Most characters of a process's output that an error shows. */
const SHOWN = 2_000;

/**
 * Starts a program, which is killed when the signal is aborted.
 * @returns its output so far, a promise of its exit code, and a function that waits for some output
 */
export function start(command, args, { cwd, signal, env: more }) {
  const env = { ...process.env, DENO_NO_UPDATE_CHECK: '1', NO_COLOR: '1', ...more };
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], signal, killSignal: 'SIGKILL' });
  let text = '';
  const waiting = new Set();
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
      for (const look of waiting) look();
    });
  }
  const ended = new Promise((resolve) => {
    child.on('error', (error) => {
      text += String(error);
    });
    child.on('close', (code, killedBy) => resolve(code ?? killedBy));
  });
  const failed = (code) => new Error(`${command.split('/').at(-1)} ended with ${code}: ${text.slice(-SHOWN)}`);
  return {
    ended,
    failed,
    output: () => text,
    printed: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const match = pattern.exec(text);
          if (match === null) return;
          waiting.delete(look);
          resolve(match);
        };
        waiting.add(look);
        look();
        ended.then((code) => reject(failed(code)));
      }),
  };
}

/** Runs a program to its end. */
export async function run(command, args, options) {
  const { ended, failed, output } = start(command, args, options);
  const code = await ended;
  if (code !== 0) throw failed(code);
  return output();
}
