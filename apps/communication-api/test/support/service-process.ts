import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { cleanUpLater } from './clean-up.ts';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const PRELOAD = new URL('at-step.mjs', import.meta.url).href;

/** The built service in a process of its own. */
export interface ServiceProcess {
  readonly url: string;
  readonly child: ChildProcess;
  /** Everything that it has written. */
  output(): string;
  /** Resolves when it has ended. */
  readonly ended: Promise<unknown>;
}

/** Starts the built service on a free port, and waits until it listens. It is killed after the test file. */
export async function startProcess(environment: Readonly<Record<string, string>>): Promise<ServiceProcess> {
  const child = spawn(process.execPath, ['--import', PRELOAD, MAIN, 'start'], {
    env: { PATH: process.env.PATH, PORT: '0', LOG_LEVEL: 'warn', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  cleanUpLater(() => void child.kill('SIGKILL'));
  let output = '';
  const ended = once(child, 'exit');
  const url = new Promise<string>((resolve, reject) => {
    const read = (chunk: Buffer): void => {
      output += chunk.toString();
      const [address] = /http:\/\/127\.0\.0\.1:[1-9]\d*/.exec(output) ?? [];
      if (address !== undefined) resolve(address);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    void ended.then(() => reject(new Error(`The service has ended: ${output}`)));
  });
  return { url: await url, child, output: () => output, ended };
}
