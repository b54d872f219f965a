import { createHash, randomBytes } from 'node:crypto';
import type { Clock } from '../domain/clock.ts';
import type { Envelope } from '../security/envelope.ts';

/** Sealed beside the endpoint. */
interface Secrets {
  readonly current: string;
  /** The secret before the last rotation, and until when (in ms since 1970) it signs, too. */
  readonly previous?: { readonly secret: string; readonly until: number };
}

/** The secrets of an endpoint, as its row stores them. */
export interface SealedSecrets {
  readonly id: string;
  readonly secrets: Uint8Array;
}

/** A secret that is shown once. */
export interface NewSecret {
  readonly secret: string;
  readonly sealed: Uint8Array;
}

/** How long the old secret also signs after a rotation. */
const ROTATION_MS = 86_400_000;
const SECRET_BYTES = 32;

const newSecret = (): string => `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
const place = (id: string): string => `webhook_endpoints/${id}/secrets`;

/** Makes the secrets of endpoints, and opens them. */
export class EndpointSecrets {
  constructor(
    private readonly envelope: Envelope,
    private readonly clock: Clock,
  ) {}

  create(id: string): NewSecret {
    const secret = newSecret();
    return { secret, sealed: this.#seal(id, { current: secret }) };
  }

  /** The next secret. For 24 hours, the old secret signs as well. */
  rotate(endpoint: SealedSecrets): NewSecret & { readonly previousUntil: Date } {
    const secret = newSecret();
    const until = this.clock() + ROTATION_MS;
    const previous = { secret: this.#open(endpoint).current, until };
    return { secret, sealed: this.#seal(endpoint.id, { current: secret, previous }), previousUntil: new Date(until) };
  }

  /** The secrets that sign now: the current one first. */
  of(endpoint: SealedSecrets): readonly string[] {
    const { current, previous } = this.#open(endpoint);
    return previous !== undefined && previous.until > this.clock() ? [current, previous.secret] : [current];
  }

  /** Until when the old secret also signs after the last rotation, if it still does. */
  previousUntil(endpoint: SealedSecrets): Date | undefined {
    const { previous } = this.#open(endpoint);
    return previous !== undefined && previous.until > this.clock() ? new Date(previous.until) : undefined;
  }

  #seal(id: string, secrets: Secrets): Uint8Array {
    return this.envelope.sealJson(place(id), secrets);
  }

  #open({ id, secrets }: SealedSecrets): Secrets {
    return this.envelope.openJson<Secrets>(place(id), secrets);
  }
}

/** Changes with each rotation of the secrets, and reveals nothing about them: it is a hash of the sealed bytes. */
export const secretsVersionOf = ({ secrets }: Pick<SealedSecrets, 'secrets'>): string =>
  createHash('sha256').update(secrets).digest('hex').slice(0, 16);
