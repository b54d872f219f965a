import { createDigest } from '../platform.ts';
import type { BodyPrint, BodyPrinter } from './body-print.ts';

/** A body of which nothing is known but its bytes. */
export class BytesPrinter implements BodyPrinter {
  readonly #digest = createDigest();

  write(bytes: Uint8Array): void {
    this.#digest.update(bytes);
  }

  end(): BodyPrint {
    return { kind: 'bytes', total: this.#digest.digest(), entries: [] };
  }
}
