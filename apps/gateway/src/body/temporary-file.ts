import { randomUUID } from 'node:crypto';
import { closeSync, constants, openSync, read, unlinkSync, write } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { BodyError } from 'headgate/http';

const readAt = promisify(read);
const writeAt = promisify(write);

/** A private file without a name. It disappears with the process, even if that is killed. */
export interface TemporaryFile {
  /** Appends all of the bytes. Throws a `BodyError` (503) if it cannot, as on a full disk. */
  append(bytes: Uint8Array): Promise<void>;
  /** Reads from a position on. Returns how many bytes it read, 0 at the end of the file. */
  readInto(into: Uint8Array, position: number): Promise<number>;
  /** Waits for running reads and writes, then closes the file. Later calls do nothing. */
  close(): Promise<void>;
}

/**
 * Opens a file and removes its name at once, so that not even a kill leaves it behind. On systems where an open file
 * keeps its name (Windows), `close` removes it.
 *
 * @throws BodyError `no_storage` (503)
 */
export function openTemporaryFile(directory: string): TemporaryFile {
  const path = join(directory, `headgate-${randomUUID()}`);
  let file: number;
  try {
    file = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL, 0o600);
  } catch (error) {
    throw noStorage(error);
  }
  let hasName = !removed(path);
  let size = 0;
  let isClosed = false;
  const running = new Set<Promise<unknown>>();
  const track = <Result>(work: () => Promise<Result>): Promise<Result> => {
    if (isClosed) return Promise.reject(noStorage(new Error('the temporary file is closed')));
    const promise = work();
    running.add(promise);
    const forget = (): void => void running.delete(promise);
    promise.then(forget, forget);
    return promise;
  };
  return {
    append: (bytes) =>
      track(async () => {
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
    readInto: (into, position) => track(async () => (await readAt(file, into, 0, into.length, position)).bytesRead),
    async close() {
      if (isClosed) return;
      isClosed = true;
      // If a descriptor is closed during a read, its number may already belong to another file.
      await Promise.allSettled(running);
      closeSync(file);
      if (hasName) hasName = !removed(path);
    },
  };
}

function removed(path: string): boolean {
  try {
    unlinkSync(path);
    return true;
  } catch {
    return false;
  }
}

function noStorage(cause: unknown): BodyError {
  return new BodyError(503, 'no_storage', 'The body cannot be stored.', { cause });
}
