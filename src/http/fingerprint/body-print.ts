/** Most pieces of a body that are told apart; a body with more is compared as a whole only. */
export const MAX_ENTRIES = 200;

/** One named piece of a body: a JSON property, a form's pair, a part. */
export interface BodyEntry {
  /** What the requester calls it. Never stored. */
  readonly label: string;
  /** Equal iff the names are. */
  readonly name: Uint8Array;
  /** Equal iff the pieces are, names included. */
  readonly content: Uint8Array;
}

/** How a body was understood. */
export type BodyKind = 'bytes' | 'json' | 'form' | 'multipart';

/** What stands for a body. */
export interface BodyPrint {
  readonly kind: BodyKind;
  /** Equal iff the bodies mean the same. */
  readonly total: Uint8Array;
  /** In an order that depends on their meaning alone; empty where there are too many. */
  readonly entries: readonly BodyEntry[];
}

/** Reads a body once, piece by piece. */
export interface BodyPrinter {
  write(bytes: Uint8Array): void;
  end(): BodyPrint;
}

/** Orders bytes: what is sorted must not depend on a locale. */
export function compareBytes(left: Uint8Array, right: Uint8Array): number {
  const length = Math.min(left.length, right.length);
  for (let i = 0; i < length; i++) {
    const difference = (left[i] as number) - (right[i] as number);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}

const DECODER = /* @__PURE__ */ new TextDecoder();
const PLAIN = /^[\x20-\x7e]+$/;

/** A name as its requester may read it again: short, and nothing but visible characters. */
export function labelOf(bytes: Uint8Array): string {
  const text = DECODER.decode(bytes.subarray(0, 64));
  if (PLAIN.test(text)) return text;
  return text.replace(/[^\p{L}\p{N}\p{P}\p{S} ]/gu, '?') || '""';
}
