import type { AbandonReply, BeginCommand, BeginReply, CompleteReply, HeldReply, KeptResult } from '../core/claim.ts';
import type { ClaimId, ClaimStore, ClaimView } from '../core/ports.ts';
import type { FakeClock } from './fake-clock.ts';

const LEASE_MS = 1_000;
const RETENTION_MS = 100_000;
const ID: ClaimId = { scope: 'app', key: 'k' };

/** A result, told by a word. */
export function resultOf(word: string): KeptResult {
  return { status: '200', value: word };
}

/** One key of a store under test, and attempts that are told by a letter: it is their token. The usual request is `f`. */
export class ClaimWorld {
  constructor(
    readonly store: ClaimStore,
    readonly clock: FakeClock,
  ) {}

  async begin(token: string, overrides: Partial<BeginCommand> & { readonly id?: ClaimId } = {}): Promise<BeginReply> {
    const { id = ID, ...changes } = overrides;
    return this.store.begin(id, { ...usual(token), onOrphan: 'reject', dispatch: false, ...changes });
  }

  /** Claims, and fails where that was not possible. Yields the generation. */
  async claim(token: string, overrides: Partial<BeginCommand> = {}): Promise<number> {
    const reply = await this.begin(token, overrides);
    if (reply.kind !== 'claimed') throw new Error(`${token} was to be given the claim, the store says ${reply.kind}`);
    return reply.generation;
  }

  async extend(token: string, generation: number, fingerprint = 'f'): Promise<HeldReply> {
    return this.store.extend(ID, { ...usual(token), generation, fingerprint });
  }

  async dispatch(token: string, generation: number, fingerprint = 'f'): Promise<HeldReply> {
    return this.store.dispatch(ID, { ...usual(token), generation, fingerprint });
  }

  async complete(token: string, result = resultOf(token), fingerprint = 'f'): Promise<CompleteReply> {
    return this.store.complete(ID, { ...usual(token), result, fingerprint });
  }

  async abandon(token: string, generation?: number, fingerprint = 'f'): Promise<AbandonReply> {
    return this.store.abandon(ID, { ...usual(token), generation, fingerprint });
  }

  async inspect(): Promise<ClaimView | undefined> {
    return this.store.inspect(ID);
  }

  /** Lets the lease run out, to the millisecond. */
  lapse(): void {
    this.clock.advance(LEASE_MS);
  }

  /** Lets the retention of what was written last run out, to the millisecond. */
  forget(): void {
    this.clock.advance(RETENTION_MS);
  }
}

function usual(token: string): {
  readonly token: string;
  readonly fingerprint: string;
  readonly leaseMs: number;
  readonly retentionMs: number;
} {
  return { token, fingerprint: 'f', leaseMs: LEASE_MS, retentionMs: RETENTION_MS };
}
