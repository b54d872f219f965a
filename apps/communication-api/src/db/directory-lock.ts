import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { UserError } from '../domain/user-error.ts';

/**
 * `lock-<pid>-<random>`: the socket of one process. The name is never used again, so a dead one can be removed safely.
 */
const SOCKET = /^lock-(\d+)-[0-9a-f]{12}$/;
/** The longest path of a socket that kernels accept, with its final zero: 108 bytes on Linux, 104 on macOS. */
const MAX_SOCKET_PATH = 103;
/** A process that accepts the connection and does not answer is alive, but stopped. */
const ANSWER_MS = 2_000;
const POLL_MS = 50;
/** How long two processes that start at the same time may take to agree. */
const AGREEMENT_MS = 10_000;

type Answer = 'holder' | 'starting' | 'gone';

/** A directory that no other process of this machine uses. */
export interface DirectoryLock {
  release(): Promise<void>;
}

/**
 * Locks a directory until `release` or the end of the process, however it ends. Each process first listens on its own
 * socket in the directory, then looks for the sockets of others, so one of two processes always sees the other. The
 * kernel closes the socket of a killed process: nothing can connect to it, and the next process removes it.
 * @throws UserError if another process uses the directory
 */
export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  const folder = realpathSync(directory);
  if (process.platform === 'win32') return lockByPipe(folder);
  const own = `lock-${process.pid}-${randomBytes(6).toString('hex')}`;
  const alias = aliasOf(folder, own);
  let state: Answer = 'starting';
  const server = await listen(join(alias.path, own), () => state, folder);
  const release = async (): Promise<void> => {
    rmSync(join(folder, own), { force: true });
    await new Promise((resolve) => server.close(resolve));
    alias.remove();
  };
  try {
    await othersAreGone(folder, alias.path, own);
  } catch (error) {
    await release();
    throw error;
  }
  state = 'holder';
  return { release };
}

/**
 * Waits until no other process holds the directory or is about to. If two processes start at the same time, the process
 * with the greater name withdraws, and the other process waits for that: it cannot know whether it was seen.
 */
async function othersAreGone(folder: string, alias: string, own: string): Promise<void> {
  const others = readdirSync(folder).filter((name) => SOCKET.test(name) && name !== own);
  const deadline = performance.now() + AGREEMENT_MS;
  for (const other of others) {
    let answer = await ask(join(alias, other));
    while (answer === 'starting' && own < other && performance.now() < deadline) {
      await pause(POLL_MS);
      answer = await ask(join(alias, other));
    }
    if (answer !== 'gone') throw inUse(folder, SOCKET.exec(other)?.[1]);
    rmSync(join(folder, other), { force: true });
  }
}

const inUse = (folder: string, pid: string | undefined): UserError =>
  new UserError(
    `DATA_DIR: another process (pid ${pid ?? 'unknown'}) uses ${folder}. Stop it first, or set another DATA_DIR. To run several processes, set DATABASE_URL.`,
    2,
  );

/** A folder whose path is short enough for a socket: the folder itself, or a link to it. */
function aliasOf(folder: string, own: string): { readonly path: string; remove(): void } {
  if (Buffer.byteLength(join(folder, own)) <= MAX_SOCKET_PATH) return { path: folder, remove: () => undefined };
  const parent = mkdtempSync(join(tmpdir(), 'ca-'));
  const path = join(parent, 'd');
  symlinkSync(folder, path);
  return { path, remove: () => rmSync(parent, { recursive: true, force: true }) };
}

async function listen(path: string, state: () => string, folder: string): Promise<Server> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.end(state());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(path, resolve);
  }).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'EADDRINUSE') throw cause;
    throw new UserError(`DATA_DIR: cannot lock ${folder}: its file system refused a socket (${cause.code}).`, 2, {
      cause,
    });
  });
  server.unref();
  return server;
}

/** The answer of the process behind a socket. Silence counts as a holder. */
function ask(path: string): Promise<Answer> {
  return new Promise((resolve) => {
    let text = '';
    const socket = connect(path);
    const timer = setTimeout(() => {
      resolve('holder');
      socket.destroy();
    }, ANSWER_MS);
    socket.setEncoding('latin1').on('data', (part: string) => {
      text += part;
    });
    socket.on('error', ({ code }: NodeJS.ErrnoException) => {
      if (code === 'ECONNREFUSED' || code === 'ENOENT') text = 'gone';
    });
    socket.on('close', () => {
      clearTimeout(timer);
      resolve(text === 'gone' || text === 'starting' ? text : 'holder');
    });
  });
}

/** Windows offers named pipes: one process at a time can listen on a name, and the name ends with the process. */
async function lockByPipe(folder: string): Promise<DirectoryLock> {
  const hash = createHash('sha256').update(folder.toLowerCase()).digest('hex').slice(0, 32);
  try {
    const server = await listen(`\\\\.\\pipe\\communication-api-${hash}`, () => 'holder', folder);
    return { release: async () => void server.close() };
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'EADDRINUSE' ? inUse(folder, undefined) : error;
  }
}
