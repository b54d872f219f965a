import type { BodyPrint, BodyPrinter } from './body-print.ts';
import { Sink } from './sink.ts';

/** A body of which nothing is known but its bytes. */
export class BytesPrinter implements BodyPrinter {
  readonly #sink = new Sink();

  write(bytes: Uint8Array): void {
    this.#sink.write(bytes);
  }

  end(): BodyPrint {
    return { kind: 'bytes', total: this.#sink.finish(), entries: [] };
  }
}
