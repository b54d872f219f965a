import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** A process of the built service. */
export interface ServiceProcess {
  readonly child: ChildProcess;
  /** What it has printed. */
  readonly printed: { out: string; error: string };
  /** Its exit code; null if a signal has ended it. */
  readonly exit: Promise<number | null>;
  /** Waits until the banner was printed. @returns the origin that it listens on */
  ready(): Promise<string>;
}

/** Starts a command of the built service. It is killed after the test. */
export function runProcess(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): ServiceProcess {
  const { PATH = '' } = process.env;
  const child = spawn(process.execPath, ['--enable-source-maps', MAIN, ...args], {
    env: { PATH, PORT: '0', LOG_LEVEL: 'warn', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const printed = { out: '', error: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed.out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    printed.error += text;
  });
  const exit = new Promise<number | null>((resolve) => child.on('close', resolve));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await exit;
  });
  const ready = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        // The banner ends with an empty line.
        const [, url] = /^communication-api {2}(\S+)[^]*\n\n$/m.exec(printed.out) ?? [];
        if (url !== undefined) resolve(url);
      };
      look();
      child.stdout.on('data', look);
      child.on('close', (code) => reject(new Error(`ended with ${code}: ${printed.error}`)));
    });
  return { child, printed, exit, ready };
}

/** Runs a command to its end. */
export async function runToEnd(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<{ readonly code: number | null; readonly out: string; readonly error: string }> {
  const { exit, printed } = runProcess(args, environment);
  return { code: await exit, ...printed };
}
