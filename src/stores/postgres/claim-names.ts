import { createHash } from 'node:crypto';
import type { ClaimId } from '../../core/ports.ts';
import { digest } from './names.ts';

/** How a claim is named in its table. */
export interface ClaimNames {
  /** 64 hexadecimal digits. The first half is of the scope. */
  readonly id: string;
  readonly scope: string;
  readonly key: string;
}

/** The first half of the ids of a scope. */
export const scopePart: (scope: string) => string = digest;

export function namesOf({ scope, key }: ClaimId): ClaimNames {
  // Most keys are used once, so a cache of their digests would only be in the way.
  const keyPart = createHash('sha256').update(key, 'utf16le').digest('hex').slice(0, 32);
  return { id: scopePart(scope) + keyPart, scope: packText(scope), key: packText(key) };
}

/** A text that PostgreSQL can store: JSON escapes NUL and lone surrogates. */
export function packText(text: string): string {
  return JSON.stringify(text);
}

/**
 * The text that {@link packText} packed.
 * @throws TypeError for any other value
 */
export function unpackText(packed: unknown): string {
  const text: unknown = typeof packed === 'string' ? JSON.parse(packed) : undefined;
  if (typeof text !== 'string') throw new TypeError('unexpected text in the row of a claim');
  return text;
}
