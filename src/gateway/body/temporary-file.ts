import { randomUUID } from 'node:crypto';
import { closeSync, constants, openSync, read, unlinkSync, write } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { BodyError } from '../../http/body-error.ts';

const readAt = promisify(read);
const writeAt = promisify(write);

/** A file of nobody else's, with no name: gone with the process, however that ends. */
export interface TemporaryFile {
  /** Appends all of the bytes. Throws a `BodyError` (503) where there is no room. */
  append(bytes: Uint8Array): Promise<void>;
  /** Fills `into` from a position on; how many bytes there were, 0 at the end. */
  readInto(into: Uint8Array, position: number): Promise<number>;
  /** Idempotent; waits for what is under way. */
  close(): Promise<void>;
}

/**
 * Opens a file and takes its name away in the same breath, so that not even a kill leaves it behind. Where a file that is open keeps its
 * name (Windows), `close` takes it.
 *
 * @throws BodyError `no_storage` (503)
 */
export function openTemporaryFile(directory: string): TemporaryFile {
  const path = join(directory, `headgate-${randomUUID()}`);
  const file = attempt(() => openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL, 0o600));
  let hasName = !unlinked(path);
  let size = 0;
  let isClosed = false;
  const underWay = new Set<Promise<unknown>>();
  const during = <Result>(work: () => Promise<Result>): Promise<Result> => {
    if (isClosed) return Promise.reject(noStorage(new Error('the temporary file is closed')));
    const promise = work();
    underWay.add(promise);
    const over = (): void => void underWay.delete(promise);
    promise.then(over, over);
    return promise;
  };
  return {
    append: (bytes) =>
      during(async () => {
        try {
          for (let at = 0; at < bytes.length; ) {
            const { bytesWritten } = await writeAt(file, bytes, at, bytes.length - at, size);
            at += bytesWritten;
            size += bytesWritten;
          }
        } catch (error) {
          throw noStorage(error);
        }
      }),
    readInto: (into, position) => during(async () => (await readAt(file, into, 0, into.length, position)).bytesRead),
    async close() {
      if (isClosed) return;
      isClosed = true;
      // A descriptor that is closed under a read may already be another file's.
      await Promise.allSettled(underWay);
      closeSync(file);
      if (hasName) hasName = !unlinked(path);
    },
  };
}

function unlinked(path: string): boolean {
  try {
    unlinkSync(path);
    return true;
  } catch {
    return false;
  }
}

function attempt<Result>(open: () => Result): Result {
  try {
    return open();
  } catch (error) {
    throw noStorage(error);
  }
}

function noStorage(cause: unknown): BodyError {
  return new BodyError(503, 'no_storage', 'The body cannot be stored.', { cause });
}
