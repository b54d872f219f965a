import { createHash, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../domain/clock.ts';
import type { Envelope } from '../security/envelope.ts';
import { SealedTokens } from '../security/sealed-tokens.ts';
import type { Authenticated } from './member.ts';
import type { Members } from './members.ts';

/** How long a person has for the code after the password. */
export const PENDING_MS = 10 * 60_000;

const digestOf = (passwordHash: string): string => createHash('sha256').update(passwordHash).digest('base64url');

/** Sign-ins between the password and the code. They are in sealed tokens, which are no sessions. */
export class PendingSignIns {
  readonly #tokens: SealedTokens;

  constructor(
    envelope: Envelope,
    private readonly clock: Clock,
    private readonly members: Members,
  ) {
    this.#tokens = new SealedTokens([envelope.derive('second-factor')]);
  }

  /** @param next where the sign-in leads */
  create({ member, passwordHash }: Authenticated, next: string): string {
    return this.#tokens.seal('sign-in', [member.id, digestOf(passwordHash), next, this.clock() + PENDING_MS]);
  }

  /** Undefined if its time is over, if the member was removed, or if the password was changed since it was entered. */
  async resolve(token: string): Promise<(Authenticated & { readonly next: string }) | undefined> {
    const [memberId, digest, next, endsMs] = this.#tokens.open('sign-in', token) ?? [];
    if (memberId === undefined || Number(endsMs) <= this.clock()) return undefined;
    const found = await this.members.findWithHash(String(memberId));
    if (found === undefined) return undefined;
    const [expected, given] = [Buffer.from(digestOf(found.passwordHash)), Buffer.from(String(digest))];
    if (expected.length !== given.length || !timingSafeEqual(expected, given)) return undefined;
    return { ...found, next: String(next) };
  }
}
