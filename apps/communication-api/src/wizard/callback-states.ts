import type { Envelope } from '../security/envelope.ts';
import { SealedTokens } from '../security/sealed-tokens.ts';

/** How a browser that comes back from a provider's own site gets to its session. */
export interface WayBack {
  /** The token of the link. */
  readonly token: string;
  /** The origin of the session's cookie: a custom domain of the link uses a different cookie. */
  readonly origin: string;
}

const KIND = 'callback';

/**
 * The `state` that a provider's own site must return. It is sealed, because the provider must not know the link, and no
 * two are equal. The session remembers its newest state, and accepts only that.
 */
export class CallbackStates {
  readonly #tokens: SealedTokens;

  constructor(envelope: Envelope) {
    this.#tokens = new SealedTokens(envelope.deriveAll('wizard-callback'));
  }

  create({ token, origin }: WayBack): string {
    return this.#tokens.seal(KIND, [token, origin]);
  }

  /** Undefined if the service did not make this state. */
  read(state: string): WayBack | undefined {
    const [token, origin] = (this.#tokens.open(KIND, state) ?? []) as [string?, string?];
    return token === undefined || origin === undefined ? undefined : { token, origin };
  }
}
