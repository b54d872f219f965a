import { Readable } from 'node:stream';
import { BodyError } from 'headgate/http';
import { BodySize, DEFAULT_IDLE_MS } from 'headgate/internal';
import type { BufferShare } from './buffer-budget.ts';
import { pump, type TakeChunk } from './pump.ts';
import { Storage } from './storage.ts';

export interface SpoolOptions {
  /** Largest body, in bytes. */
  readonly maxBytes: number;
  /**
   * Largest body that stays in memory, in bytes; a longer one is written to a temporary file.
   * @default 65_536
   */
  readonly memoryBytes?: number | undefined;
  /**
   * Longest wait for the next chunk, in milliseconds.
   * @default 30_000
   */
  readonly idleMs?: number | undefined;
  /**
   * Folder for temporary files. Only this process can read them, and they disappear with it.
   * @default os.tmpdir()
   */
  readonly directory?: string | undefined;
  /** Counts the bytes, if given. The reading ends if there is no room. */
  readonly buffer?: BufferShare | undefined;
  /**
   * Called with every chunk while the body comes in. If it returns a promise, the next chunk waits for it. Its error
   * ends the reading.
   */
  readonly observe?: TakeChunk | undefined;
}

/** A body that was read once and can be sent any number of times. */
export interface SpooledBody {
  /** In bytes. */
  readonly size: number;
  /** Whether it is in a file. */
  readonly isOnDisk: boolean;
  /** All of it, if it is in memory. Must not be changed, and is valid until `dispose`. */
  readonly bytes: Uint8Array | undefined;
  /** A stream of the same bytes from the beginning. Several streams may be open at a time. Throws after `dispose`. */
  open(): Readable;
  /** Frees memory and file, and breaks off open streams. Later calls do nothing. */
  dispose(): Promise<void>;
}

/** A file counts as at least so many bytes, so that the budget also bounds how many files are open. */
const FILE_BYTES = 262_144;

/**
 * Reads a body to its end: up to a bound into memory, past it into a temporary file. If that fails, everything stored
 * is freed, and the source is paused but not destroyed.
 *
 * @throws BodyError `too_large` (413), `aborted` (400), `stalled` (408), `no_storage` (503), `already_read` (500), and
 * whatever `observe` throws
 */
export async function spoolBody(source: Readable, options: SpoolOptions): Promise<SpooledBody> {
  const { memoryBytes = 65_536, idleMs = DEFAULT_IDLE_MS, directory, buffer, observe } = options;
  const storage = new Storage(memoryBytes, directory);
  const size = new BodySize(options.maxBytes);
  let counted = 0;
  let isOver = false;
  const count = (): void => {
    const bytes = size.bytes > memoryBytes ? Math.max(size.bytes, FILE_BYTES) : size.bytes;
    if (buffer?.add(bytes - counted) === false) throw noRoom();
    counted = bytes;
  };
  const free = async (): Promise<void> => {
    await storage.close();
    buffer?.remove(counted);
  };
  try {
    await pump(
      source,
      (chunk) => {
        size.add(chunk.length);
        count();
        const observed = observe?.(chunk);
        if (observed === undefined) return storage.append(chunk);
        // If the reading failed meanwhile, the storage is closed.
        return observed.then(() => (isOver ? undefined : storage.append(chunk)));
      },
      { idleMs },
    );
    await storage.flush();
  } catch (error) {
    isOver = true;
    await free();
    throw error;
  }
  return new Spool(size.bytes, storage, free);
}

class Spool implements SpooledBody {
  #isDisposed = false;
  readonly #open = new Set<Readable>();

  constructor(
    readonly size: number,
    private readonly storage: Storage,
    private readonly free: () => Promise<void>,
  ) {}

  get isOnDisk(): boolean {
    return this.storage.isOnDisk;
  }

  get bytes(): Uint8Array | undefined {
    if (this.#isDisposed) throw disposed();
    return this.storage.bytes;
  }

  open(): Readable {
    if (this.#isDisposed) throw disposed();
    const stream = Readable.from(this.storage.read(this.size), { objectMode: false });
    this.#open.add(stream);
    stream.once('close', () => this.#open.delete(stream));
    return stream;
  }

  async dispose(): Promise<void> {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    for (const stream of this.#open) stream.destroy(disposed());
    await this.free();
  }
}

function noRoom(): BodyError {
  return new BodyError(503, 'no_storage', 'Too many bodies are being buffered; nothing was done. Retry later.');
}

function disposed(): Error {
  return new Error('the stored body was disposed of');
}
