import type { BodyFingerprint, BodyFingerprinter } from './body-fingerprint.ts';
import { DigestBuffer } from './digest-buffer.ts';

/** Compares a body by its bytes. */
export class BytesFingerprinter implements BodyFingerprinter {
  readonly #content = new DigestBuffer();

  write(bytes: Uint8Array): void {
    this.#content.write(bytes);
  }

  end(): BodyFingerprint {
    return { kind: 'bytes', total: this.#content.finish(), entries: [] };
  }
}
