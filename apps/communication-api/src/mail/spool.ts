import { randomUUID } from 'node:crypto';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { RETRY_SECONDS, ServiceError } from '../domain/service-error.ts';

/** A smaller file stays in memory. */
const MAX_IN_MEMORY = 65_536;
/** Errors of a full disk, and of a process with too many open files. */
const OUT_OF_SPACE = new Set(['ENOSPC', 'EDQUOT', 'EMFILE', 'ENFILE']);

/** A file that was received. */
export interface SpooledFile {
  readonly size: number;
  /** The bytes. Each call reads them from their start. */
  open(): Readable;
  /** Frees memory and disk, unless it is held. */
  close(): Promise<void>;
  /**
   * Keeps the bytes after `close`.
   * @returns ends the hold
   */
  hold(): () => Promise<void>;
}

/** Stores files on disk while their requests are served, within one quota for all requests. */
export class Spool {
  #used = 0;

  constructor(private readonly maxBytes: number) {}

  /** Bytes that are on disk now. */
  get usedBytes(): number {
    return this.#used;
  }

  /**
   * Reads a stream to its end and stores it.
   * @throws ServiceError 503 if no space is left in the quota, or on the disk
   */
  async store(source: AsyncIterable<Uint8Array>): Promise<SpooledFile> {
    const chunks: Uint8Array[] = [];
    let size = 0;
    let reserved = 0;
    let handle: FileHandle | undefined;
    const write = async (bytes: Uint8Array): Promise<void> => {
      reserved += bytes.length;
      this.#used += bytes.length;
      if (this.#used > this.maxBytes) throw noSpace();
      handle ??= await unnamedFile();
      // It writes all bytes, also if the system takes them in pieces.
      await handle.appendFile(bytes);
    };
    let holders = 1;
    const free = async (): Promise<void> => {
      this.#used -= reserved;
      reserved = 0;
      await handle?.close();
    };
    /** Frees the file when its last holder releases it. Each holder does so once. */
    const release = (): (() => Promise<void>) => {
      let isReleased = false;
      return async () => {
        if (isReleased) return;
        isReleased = true;
        holders--;
        if (holders === 0) await free();
      };
    };
    try {
      for await (const chunk of source) {
        size += chunk.length;
        chunks.push(chunk);
        if (size > MAX_IN_MEMORY) await write(Buffer.concat(chunks.splice(0)));
      }
    } catch (error) {
      await free();
      throw OUT_OF_SPACE.has((error as NodeJS.ErrnoException).code ?? '') ? noSpace(error) : error;
    }
    const file = handle;
    return {
      size,
      open: () => (file === undefined ? Readable.from(chunks) : readAll(file, size)),
      close: release(),
      hold: () => {
        holders++;
        return release();
      },
    };
  }
}

const noSpace = (cause?: unknown): ServiceError =>
  new ServiceError(
    503,
    'errors/service_unavailable',
    'The disk space for attachments is in use by other requests. Try again.',
    { retryAfter: RETRY_SECONDS, cause },
  );

/** A file without a name: it disappears with its handle, also if the process is killed. */
async function unnamedFile(): Promise<FileHandle> {
  const path = join(tmpdir(), `communication-api-${randomUUID()}`);
  const handle = await open(path, 'wx+', 0o600);
  try {
    await unlink(path);
  } catch (error) {
    await handle.close();
    throw error;
  }
  return handle;
}

/** The stream of `node:fs` would close the file with itself, also for its other readers. */
const readAll = (handle: FileHandle, size: number): Readable =>
  Readable.from(chunksOf(handle, size), { objectMode: false, highWaterMark: MAX_IN_MEMORY });

async function* chunksOf(handle: FileHandle, size: number): AsyncGenerator<Uint8Array> {
  for (let position = 0; position < size; ) {
    const length = Math.min(MAX_IN_MEMORY, size - position);
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(length), 0, length, position);
    if (bytesRead === 0) throw new Error('The file is shorter than it was.');
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}
