import { SealedTokens } from '../security/sealed-tokens.ts';
import type { TrackedLink } from './tracked-link.ts';

/** The content of a link in an email. */
export interface LinkToken extends TrackedLink {
  readonly sendId: string;
}

/**
 * The tokens of tracked links and pixels. Only the service can make them, so an attacker cannot choose the target of a
 * redirect.
 */
export class TrackingTokens {
  readonly #tokens: SealedTokens;

  /** @param keys 32 bytes each: the first one seals; all of them open */
  constructor(keys: readonly Uint8Array[]) {
    this.#tokens = new SealedTokens(keys);
  }

  sealLink({ sendId, no, target }: LinkToken): string {
    return this.#tokens.seal('link', [sendId, no, target]);
  }

  sealPixel(sendId: string): string {
    return this.#tokens.seal('pixel', [sendId]);
  }

  /** Undefined if the service did not make this token for a link, or if its key was removed. */
  openLink(token: string): LinkToken | undefined {
    const [sendId, no, target] = (this.#tokens.open('link', token) ?? []) as [string?, number?, string?];
    return sendId === undefined || no === undefined || target === undefined ? undefined : { sendId, no, target };
  }

  /** The id of the send. Undefined if the service did not make this token for a pixel, or if its key was removed. */
  openPixel(token: string): string | undefined {
    const [sendId] = (this.#tokens.open('pixel', token) ?? []) as [string?];
    return sendId;
  }
}
