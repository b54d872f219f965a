import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { TrackedLink } from './tracked-link.ts';

/** What a link of an email says. */
export interface LinkToken extends TrackedLink {
  readonly sendId: string;
}

type Kind = 'link' | 'pixel';

const NONCE = 12;
const TAG = 16;

/**
 * The tokens of tracked links and pixels: sealed by AES-256-GCM, in URL-safe base64. Only the service can make them, so
 * an attacker cannot choose the target of a redirect.
 */
export class TrackingTokens {
  /** @param keys 32 bytes each: the first one seals; all of them open */
  constructor(private readonly keys: readonly Uint8Array[]) {}

  sealLink({ sendId, no, target }: LinkToken): string {
    return this.#seal('link', [sendId, no, target]);
  }

  sealPixel(sendId: string): string {
    return this.#seal('pixel', [sendId]);
  }

  /** Undefined if the service did not make this token for a link, or if its key was removed. */
  openLink(token: string): LinkToken | undefined {
    const [sendId, no, target] = (this.#open('link', token) ?? []) as [string?, number?, string?];
    return sendId === undefined || no === undefined || target === undefined ? undefined : { sendId, no, target };
  }

  /** The id of the send. Undefined if the service did not make this token for a pixel, or if its key was removed. */
  openPixel(token: string): string | undefined {
    const [sendId] = (this.#open('pixel', token) ?? []) as [string?];
    return sendId;
  }

  #seal(kind: Kind, fields: readonly unknown[]): string {
    const [key] = this.keys;
    if (key === undefined) throw new Error('Tracking tokens need a key.');
    const nonce = randomBytes(NONCE);
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(kind));
    const sealed = [nonce, cipher.update(JSON.stringify(fields)), cipher.final(), cipher.getAuthTag()];
    return Buffer.concat(sealed).toString('base64url');
  }

  #open(kind: Kind, token: string): unknown {
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
      return JSON.parse(text.toString());
    }
    return undefined;
  }
}
