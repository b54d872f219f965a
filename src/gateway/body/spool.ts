import { tmpdir } from 'node:os';
import { Readable } from 'node:stream';
import { BodySize, DEFAULT_IDLE_MS } from '../../http/body-limits.ts';
import { pump, type TakeChunk } from './pump.ts';
import { Storage } from './storage.ts';

export interface SpoolOptions {
  /** Largest body, in bytes. */
  readonly maxBytes: number;
  /**
   * Largest body that stays in memory, in bytes; a longer one is written to a temporary file.
   * @default 1_048_576
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
  /** Ends the reading. */
  readonly signal?: AbortSignal | undefined;
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
  /** A stream of the same bytes from the beginning. Several streams may be open at a time. Throws after `dispose`. */
  open(): Readable;
  /** Frees memory and file, and breaks off open streams. Later calls do nothing. */
  dispose(): Promise<void>;
}

/**
 * Reads a body to its end: up to a bound into memory, past it into a temporary file. If that fails, everything stored
 * is freed, and the source is paused but not destroyed.
 *
 * @throws BodyError `too_large` (413), `aborted` (400), `stalled` (408), `no_storage` (503), `already_read` (500), and
 * whatever `observe` throws
 */
export async function spoolBody(source: Readable, options: SpoolOptions): Promise<SpooledBody> {
  const { memoryBytes = 1_048_576, idleMs = DEFAULT_IDLE_MS, directory = tmpdir(), signal, observe } = options;
  const storage = new Storage(memoryBytes, directory);
  const size = new BodySize(options.maxBytes);
  let isOver = false;
  try {
    await pump(
      source,
      (chunk) => {
        size.add(chunk.length);
        const observed = observe?.(chunk);
        if (observed === undefined) return storage.append(chunk);
        // Meanwhile the reading may have failed, and the storage is closed then.
        return observed.then(() => (isOver ? undefined : storage.append(chunk)));
      },
      { idleMs, signal },
    );
    await storage.flush();
  } catch (error) {
    isOver = true;
    await storage.close();
    throw error;
  }
  return new Spool(size.bytes, storage);
}

class Spool implements SpooledBody {
  #isDisposed = false;
  readonly #open = new Set<Readable>();

  constructor(
    readonly size: number,
    private readonly storage: Storage,
  ) {}

  get isOnDisk(): boolean {
    return this.storage.isOnDisk;
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
    await this.storage.close();
  }
}

function disposed(): Error {
  return new Error('the stored body was disposed of');
}
