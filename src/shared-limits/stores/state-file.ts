import { randomUUID } from 'node:crypto';
import { open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { inSlices } from '../../base/slices.ts';
import { type AdjustmentState, isSameHead, MAX_RECENT } from '../../core/adjustment.ts';
import { readState } from './json.ts';

/** A later format is not read as this one. */
const FORMAT = 1;
/**
 * 100,000 adjustments and their history take less. A larger file was not written by headgate, and would fill the
 * memory.
 */
const MAX_BYTES = 256 * 1_048_576;
/** After so long, no process goes on to write a file that is not complete. */
const ABANDONED_MS = 3_600_000;

/**
 * Reads what {@link saveState} wrote.
 * @returns undefined without a file
 * @throws Error with the path
 */
export async function loadState(path: string): Promise<AdjustmentState | undefined> {
  const text = await readText(path);
  // A part that a crash left does no harm, so it is no reason to fail.
  await removeAbandoned(path).catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    const stored = JSON.parse(text);
    if (stored?.format !== FORMAT) throw new TypeError(`format must be ${FORMAT}`);
    const state = await readState(stored);
    const { head, recent } = state;
    if (recent.length > MAX_RECENT || (recent.length > 0 && !isSameHead(recent.at(-1), head)))
      throw new TypeError(`recent must be at most ${MAX_RECENT} entries, the last one with the version of head`);
    return state;
  } catch (error) {
    throw new Error(`${path} has no adjustments that can be read: correct it, or remove it to begin without any`, {
      cause: error,
    });
  }
}

/**
 * Replaces a file as a whole: a crash leaves the old one or the new one, and so do several processes that write it at
 * the same time.
 */
export async function saveState(path: string, state: AdjustmentState): Promise<void> {
  const text = await textOf(state);
  // A unique name, since another process may write the same file.
  const written = `${path}.${randomUUID()}.new`;
  try {
    const file = await open(written, 'wx', 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(written, path);
  } catch (error) {
    await rm(written, { force: true });
    throw error;
  }
}

/** Removes the partial files of processes that were killed while they wrote. */
async function removeAbandoned(path: string): Promise<void> {
  const folder = dirname(path);
  const isPart = (name: string): boolean => name.startsWith(`${basename(path)}.`) && name.endsWith('.new');
  for (const name of (await readdir(folder)).filter(isPart)) {
    const part = join(folder, name);
    if (Date.now() - (await stat(part)).mtimeMs > ABANDONED_MS) await rm(part, { force: true });
  }
}

async function readText(path: string): Promise<string | undefined> {
  try {
    const about = await stat(path);
    // To read a pipe could take forever.
    if (!about.isFile()) throw new Error(`${path} is not a file`);
    if (about.size > MAX_BYTES) throw new Error(`${path} has ${about.size} bytes (at most ${MAX_BYTES})`);
    const file = await open(path, 'r');
    try {
      return await file.readFile('utf8');
    } finally {
      await file.close();
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** In slices: there may be many adjustments. */
async function textOf({ head, adjustments, recent }: AdjustmentState): Promise<string> {
  const [all, last]: [string[], string[]] = [[], []];
  await inSlices(adjustments, (each) => all.push(JSON.stringify(each)));
  await inSlices(recent, (each) => last.push(JSON.stringify(each)));
  return `{"format":${FORMAT},"head":${JSON.stringify(head)},"adjustments":[${all.join()}],"recent":[${last.join()}]}`;
}
