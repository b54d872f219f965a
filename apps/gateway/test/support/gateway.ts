import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { OutgoingHttpHeaders } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterFile } from 'headgate-testbed/after-file';
import { type Ask, eventually, type Reply, send } from 'headgate-testbed/raw-http';
import { listenDefaults, onListening } from 'headgate-testbed/tls-listener';
import { expect } from 'vitest';

export const HEADGATE = fileURLToPath(new URL('../../dist/headgate.cjs', import.meta.url));

/** The token of the key of application `app_1` in `configOf`. */
export const TOKEN = 'hg_test_token_0123456789abcdef';

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Output extends Exit {
  readonly stdout: string;
  readonly stderr: string;
  /** Both together, for text that may be on either. */
  readonly all: string;
}

export interface Gateway {
  readonly port: number;
  readonly adminPort: number;
  readonly process: ChildProcess;
  readonly exited: Promise<Exit>;
  output(): string;
  /** The lines of the output that are JSON. */
  log(): Record<string, unknown>[];
  /** Sends a request with the standard key. `headers` may replace the key; `'x-api-key': undefined` leaves it out. */
  ask(method: string, path: string, headers?: OutgoingHttpHeaders, more?: Partial<Ask>): Promise<Reply>;
  signal(signal: NodeJS.Signals): void;
  /** Sends SIGTERM and waits for the exit; sends SIGKILL after ten seconds. */
  stop(): Promise<Exit>;
}

export type Config = Record<string, unknown>;

/** A process that loads an SDK takes seconds to start on a busy machine. One that ended is noticed at once. */
const START_MS = 30_000;

let scratch: string | undefined;
const children = new Set<ChildProcess>();
let files = 0;

const killAll = () => {
  for (const child of children) child.kill('SIGKILL');
};
process.on('exit', killAll);

/** The folder of this test file; it is removed after the file, and every process has ended by then. */
function fileFolder(): string {
  if (scratch !== undefined) return scratch;
  const folder = mkdtempSync(join(tmpdir(), 'headgate-process-'));
  scratch = folder;
  afterFile(async () => {
    scratch = undefined;
    killAll();
    await eventually(() => children.size === 0, 'the end of every process');
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

/** An empty folder of this test file's own. */
export const scratchFolder = (): string => mkdtempSync(join(fileFolder(), 'cwd-'));

export function writeConfig(config: Config | string): string {
  files += 1;
  const file = join(fileFolder(), `config-${files}.json`);
  writeFileSync(file, typeof config === 'string' ? config : JSON.stringify(config));
  return file;
}

/**
 * A complete config, with `rest` over it: one key, application `app_1`, accounts `acc_1` to `acc_9` of provider `mock`.
 */
export function configOf(upstream: string, rest: Config = {}): Config {
  return {
    upstream,
    keys: [{ sha256: sha256(TOKEN), application: 'app_1', role: 'account' }],
    accounts: Array.from({ length: 9 }, (_, i) => ({ id: `acc_${i + 1}`, application: 'app_1', provider: 'mock' })),
    routes: [
      { route: 'GET /api/v1/chats', account: 'query.account_id' },
      { route: 'POST /api/v1/chats', account: 'query.account_id' },
      { route: 'GET /api/v1/accounts/{account_id}/chats', account: 'path.account_id' },
      { route: 'POST /api/v1/messages', account: 'header.x-account-id' },
      { route: 'GET /api/v1/open', account: 'none' },
      { route: 'POST /api/v1/open', account: 'none' },
    ],
    limits: { default: { allMethods: ['1000/1m'] } },
    ...rest,
  };
}

/** After this time, a process that does not end is killed. */
const KILL_MS = 30_000;

/** A free port, below the range from which the system assigns ports. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 12_000 + Math.floor(Math.random() * 18_000);
    const free = await new Promise<boolean>((resolve) => {
      const probe = createServer();
      probe.once('error', () => resolve(false));
      probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
    });
    if (free) return port;
  }
}

interface Spawned {
  readonly child: ChildProcess;
  readonly exited: Promise<Exit>;
  stdout(): string;
  stderr(): string;
}

function spawnHeadgate(args: readonly string[], cwd: string, env: NodeJS.ProcessEnv = {}): Spawned {
  const stdio: ['ignore', 'pipe', 'pipe'] = ['ignore', 'pipe', 'pipe'];
  const child = spawn(process.execPath, [HEADGATE, ...args], { cwd, stdio, env: { ...process.env, ...env } });
  children.add(child);
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (chunk: string) => {
      texts[name] += chunk;
    });
  }
  const exited = new Promise<Exit>((resolve) => {
    child.on('close', (code, signal) => {
      children.delete(child);
      resolve({ code, signal });
    });
  });
  return { child, exited, stdout: () => texts.stdout, stderr: () => texts.stderr };
}

/**
 * Runs the command to its end. After ten seconds it is killed; its code is then null.
 * @param env is added to the environment of this process
 */
export async function runHeadgate(
  args: readonly string[],
  cwd = scratchFolder(),
  env: NodeJS.ProcessEnv = {},
): Promise<Output> {
  const { child, exited, stdout, stderr } = spawnHeadgate(args, cwd, env);
  const timer = setTimeout(() => child.kill('SIGKILL'), KILL_MS);
  const exit = await exited;
  clearTimeout(timer);
  return { ...exit, stdout: stdout(), stderr: stderr(), all: `${stdout()}\n${stderr()}` };
}

/**
 * Runs `serve` on free ports, unless the config names others, and waits until /healthz responds.
 * @param env is added to the environment of this process
 */
export async function startGateway(
  config: Config,
  flags: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
): Promise<Gateway> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort();
    const adminPort = await freePort();
    const listen = { host: '127.0.0.1', port, ...listenDefaults() };
    const listeners = { listen, admin: { host: '127.0.0.1', port: adminPort } };
    onListening(port);
    const file = writeConfig({ ...listeners, ...config });
    try {
      return await serve(['--config', file, ...flags], port, adminPort, env);
    } catch (error) {
      if (attempt === 3 || !String(error).includes('EADDRINUSE')) throw error;
    }
  }
}

/** Runs `serve` with only these flags, and waits until /healthz responds on `port`. */
export async function serve(
  flags: readonly string[],
  port: number,
  adminPort = 0,
  env: NodeJS.ProcessEnv = {},
): Promise<Gateway> {
  const { child, exited, stdout, stderr } = spawnHeadgate(['serve', ...flags], scratchFolder(), env);
  const output = () => `${stdout()}\n${stderr()}`;
  let ended: Exit | undefined;
  void exited.then((exit) => {
    ended = exit;
  });
  await eventually(
    async () => {
      if (ended !== undefined) throw new Error(`It ended with ${ended.code ?? ended.signal} at start:\n${output()}`);
      return send(port, { path: '/healthz' }).then(
        (reply) => reply.status === 200,
        () => false,
      );
    },
    'the first 200 of /healthz',
    START_MS,
  );
  return {
    port,
    adminPort,
    process: child,
    exited,
    output,
    log: () => output().split('\n').flatMap(parseLine),
    ask: (method, path, headers = {}, more = {}) =>
      send(port, { method, path, headers: withoutUndefined({ 'x-api-key': TOKEN, ...headers }), ...more }),
    signal: (signal) => void child.kill(signal),
    stop: async () => {
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), KILL_MS);
      const exit = await exited;
      clearTimeout(timer);
      return exit;
    },
  };
}

function withoutUndefined(headers: OutgoingHttpHeaders): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
}

function parseLine(line: string): Record<string, unknown>[] {
  if (!line.startsWith('{')) return [];
  try {
    return [JSON.parse(line) as Record<string, unknown>];
  } catch {
    return [];
  }
}

type Fields = Readonly<Record<string, string | string[] | undefined>>;

/** Expects a complete error object with this status and type, and returns it. */
export function expectProblem(
  reply: { readonly status: number; readonly headers: Fields; readonly text: string },
  status: number,
  type: string,
): Record<string, unknown> {
  expect({ status: reply.status, text: reply.text }).toEqual({ status, text: expect.stringContaining(type) });
  expect(reply.headers['content-type']).toMatch(/^application\/json\b/);
  const problem = JSON.parse(reply.text) as Record<string, unknown>;
  expect(problem).toMatchObject({
    status,
    type,
    title: expect.stringMatching(/./),
    req_id: expect.stringMatching(/./),
  });
  const extra = Object.keys(problem).filter(
    (k) => !['title', 'detail', 'instance', 'type', 'status', 'req_id'].includes(k),
  );
  expect(extra).toEqual([]);
  expect(reply.headers['x-request-id']).toBe(problem.req_id);
  return problem;
}

/** The rate-limit headers as numbers; undefined for a missing header. */
export function ratesOf(reply: { readonly headers: Fields }) {
  const number = (name: string) => (reply.headers[name] === undefined ? undefined : Number(reply.headers[name]));
  return {
    limit: number('x-ratelimit-limit'),
    remaining: number('x-ratelimit-remaining'),
    reset: number('x-ratelimit-reset'),
    retryAfter: number('retry-after'),
  };
}

/** The result of `ratesOf` for a response without any of these headers. */
export const NO_RATES = { limit: undefined, remaining: undefined, reset: undefined, retryAfter: undefined };
