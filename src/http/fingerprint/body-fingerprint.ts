import { DigestBuffer } from './digest-buffer.ts';

/** A body with more pieces than this is compared only as a whole. */
export const MAX_ENTRIES = 200;

/** One named piece of a body: a JSON property, a pair of a form, or a part of a multipart body. */
export interface BodyEntry {
  /** Its name as the client can read it. Never stored. */
  readonly label: string;
  /** Equal if and only if the names are equal. */
  readonly name: Uint8Array;
  /** Equal if and only if the pieces are equal, names included. */
  readonly content: Uint8Array;
}

/** How a body was parsed. */
export type BodyKind = 'bytes' | 'json' | 'form' | 'multipart';

/** The part of a request's fingerprint that represents its body. */
export interface BodyFingerprint {
  readonly kind: BodyKind;
  /** Equal if and only if the bodies mean the same. */
  readonly total: Uint8Array;
  /** In an order that depends only on their meaning. Empty if there are more than {@link MAX_ENTRIES}. */
  readonly entries: readonly BodyEntry[];
}

/** Makes the fingerprint of a body while the body arrives. */
export interface BodyFingerprinter {
  write(bytes: Uint8Array): void;
  end(): BodyFingerprint;
}

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

const DECODER = /* @__PURE__ */ new TextDecoder();
const PLAIN = /^[\x20-\x7e]+$/;

/** A name that can be shown to the client again: short, and with visible characters only. */
export function readableLabel(bytes: Uint8Array): string {
  const text = DECODER.decode(bytes.subarray(0, 64));
  if (PLAIN.test(text)) return text;
  return text.replace(/[^\p{L}\p{N}\p{P}\p{S} ]/gu, '?') || '""';
}
