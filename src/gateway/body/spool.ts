import { tmpdir } from 'node:os';
import { Readable } from 'node:stream';
import { BodyError } from '../../http/body-error.ts';
import { type BodySource, pump } from './pump.ts';
import { Storage } from './storage.ts';

export interface SpoolOptions {
  /** Bound of the body, in bytes. */
  readonly maxBytes: number;
  /**
   * Most that is held in memory, in bytes; a longer body goes to a temporary file.
   * @default 1_048_576
   */
  readonly memoryBytes?: number | undefined;
  /**
   * Longest wait for the next piece, in milliseconds.
   * @default 30_000
   */
  readonly idleMs?: number | undefined;
  /**
   * Where temporary files are made: readable by nobody else, gone with the process.
   * @default os.tmpdir()
   */
  readonly directory?: string | undefined;
  /** Gives up the reading. */
  readonly signal?: AbortSignal | undefined;
  /** Reads along while the body comes in, in the same pass. What it throws ends the reading. */
  readonly observe?: ((chunk: Uint8Array) => unknown) | undefined;
}

/** A body that was read once and can be sent any number of times. */
export interface SpooledBody {
  /** In bytes. */
  readonly size: number;
  /** Whether it is in a file. */
  readonly isOnDisk: boolean;
  /** The very same bytes, from the beginning; as often as needed, and at the same time. Throws after `dispose`. */
  open(): Readable;
  /** Frees memory and file; streams that are still open break off. Idempotent. */
  dispose(): Promise<void>;
}

/**
 * Reads a body to its end, in memory up to a bound and then to a temporary file. Where it fails nothing stays behind, and the source is
 * paused, not destroyed.
 *
 * @throws BodyError `too_large` (413), `aborted` (400), `stalled` (408), `no_storage` (503), `already_read` (500), and whatever `observe` throws
 */
export async function spoolBody(source: BodySource, options: SpoolOptions): Promise<SpooledBody> {
  const { maxBytes, memoryBytes = 1_048_576, idleMs = 30_000, directory = tmpdir(), signal, observe } = options;
  const storage = new Storage(memoryBytes, directory);
  let size = 0;
  try {
    await pump(
      source,
      (chunk) => {
        size += chunk.length;
        if (size > maxBytes) throw new BodyError(413, 'too_large', `The body has more than ${maxBytes} bytes.`);
        observe?.(chunk);
        return storage.append(chunk);
      },
      { idleMs, signal },
    );
    await storage.flush();
  } catch (error) {
    await storage.close();
    throw error;
  }
  return new Spool(size, storage);
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
  return new Error('the spooled body was disposed of');
}
