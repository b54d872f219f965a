import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const NONCE = 12;
const TAG = 16;

/**
 * Tokens that carry a few JSON values: sealed by AES-256-GCM, in URL-safe base64. Only the service can make and read
 * them, and two tokens of the same values differ.
 */
export class SealedTokens {
  /** @param keys 32 bytes each: the first one seals; all of them open */
  constructor(private readonly keys: readonly Uint8Array[]) {}

  /** @param kind the purpose of the token: it cannot be opened as another kind */
  seal(kind: string, values: readonly unknown[]): string {
    const [key] = this.keys;
    if (key === undefined) throw new Error('Sealed tokens need a key.');
    const nonce = randomBytes(NONCE);
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(kind));
    const sealed = [nonce, cipher.update(JSON.stringify(values)), cipher.final(), cipher.getAuthTag()];
    return Buffer.concat(sealed).toString('base64url');
  }

  /** The values of a token. Undefined if the service did not make it for this kind, or if its key was removed. */
  open(kind: string, token: string): readonly unknown[] | undefined {
    const sealed = Buffer.from(token, 'base64url');
    // The decoder ignores characters that are not of its alphabet.
    if (sealed.length < NONCE + TAG || sealed.toString('base64url') !== token) return undefined;
    for (const key of this.keys) {
      const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE), { authTagLength: TAG })
        .setAAD(Buffer.from(kind))
        .setAuthTag(sealed.subarray(-TAG));
      const text = decipher.update(sealed.subarray(NONCE, -TAG));
      try {
        decipher.final();
      } catch {
        continue;
      }
      return JSON.parse(text.toString()) as readonly unknown[];
    }
    return undefined;
  }
}
