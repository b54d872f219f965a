import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Owner } from 'headgate-testbed/server-user';
import { cleanUpLater } from './clean-up.ts';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
/**
 * Of V8: WebAssembly is not compiled a second time while it runs. The embedded database starts in half of the time then;
 * in production, its queries are faster later.
 */
const OPTIONS = ['--enable-source-maps', '--liftoff-only'];
const PRELOAD = new URL('at-step.mjs', import.meta.url).href;

/** A process of the built service. */
export interface RunningProcess {
  readonly child: ChildProcess;
  /** The printed text. */
  readonly printed: { out: string; error: string };
  /** Its exit code; null if a signal ended it. */
  readonly exit: Promise<number | null>;
  /** Waits until the banner was printed. @returns the origin that it listens on */
  ready(): Promise<string>;
}

type Environment = Readonly<Record<string, string>>;

/** Which program is started, and how. */
export interface ProgramOptions {
  /** Default: the built service of this repository. */
  readonly main?: string;
  /** The user. Default: the one of this process. */
  readonly owner?: Owner | undefined;
  /** A program with its arguments that becomes the process, such as one that enters a namespace. */
  readonly through?: readonly string[];
}

/**
 * Starts a command of the built service. It is killed after the test file.
 * @param options of Node
 */
export function runProcess(
  args: readonly string[],
  environment: Environment = {},
  options: readonly string[] = OPTIONS,
  { main = MAIN, owner, through = [] }: ProgramOptions = {},
): RunningProcess {
  const { PATH = '' } = process.env;
  const [program = '', ...rest] = [...through, process.execPath, ...options, main, ...args];
  const child = spawn(program, rest, {
    env: { PATH, PORT: '0', LOG_LEVEL: 'warn', EGRESS_POLICY: 'off', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...owner,
  });
  const printed = { out: '', error: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed.out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    printed.error += text;
  });
  const exit = new Promise<number | null>((resolve) => child.on('close', resolve));
  cleanUpLater(() => {
    child.kill('SIGKILL');
    return exit;
  });
  const ready = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        // The banner ends with an empty line.
        const [, url] = /^communication-api {2}(\S+)[\s\S]*\n\n/m.exec(printed.out) ?? [];
        if (url !== undefined) resolve(url);
      };
      look();
      child.stdout.on('data', look);
      child.on('close', (code) => reject(new Error(`The service ended with ${code}: ${printed.error}`)));
    });
  return { child, printed, exit, ready };
}

/** Runs a command to its end. */
export async function runToEnd(
  args: readonly string[],
  environment: Environment = {},
): Promise<{ readonly code: number | null; readonly out: string; readonly error: string }> {
  const { exit, printed } = runProcess(args, environment);
  return { code: await exit, ...printed };
}

/** The built service, which listens and can be killed at a step of a send. */
export interface ServiceProcess {
  readonly url: string;
  readonly child: ChildProcess;
  /** Everything that it wrote. */
  output(): string;
  /** Resolves when it ends. */
  readonly ended: Promise<unknown>;
}

/** Starts the built service on a free port, and waits until it listens. It is killed after the test file. */
export async function startProcess(environment: Environment): Promise<ServiceProcess> {
  const { child, printed, exit, ready } = runProcess(['start'], environment, ['--import', PRELOAD]);
  return { url: await ready(), child, output: () => printed.out + printed.error, ended: exit };
}
