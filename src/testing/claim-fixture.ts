import type { AbandonReply, BeginCommand, BeginReply, CompleteReply, HeldReply, KeptResult } from '../core/claim.ts';
import type { ClaimId, ClaimStore, ClaimView } from '../core/ports.ts';
import type { FakeClock } from './fake-clock.ts';

const LEASE_MS = 1_000;
const RETENTION_MS = 100_000;
const RELEASED_RETENTION_MS = 10_000;
const ID: ClaimId = { scope: 'app', key: 'k' };

/** A result with this value. */
export function resultWith(value: string): KeptResult {
  return { status: '200', value };
}

/**
 * One key of a store under test. Attempts are named by a letter, which is their token. The usual fingerprint is `f`.
 */
export class ClaimFixture {
  constructor(
    readonly store: ClaimStore,
    readonly clock: FakeClock,
  ) {}

  async begin(token: string, overrides: Partial<BeginCommand> & { readonly id?: ClaimId } = {}): Promise<BeginReply> {
    const { id = ID, ...changes } = overrides;
    return this.store.begin(id, { ...defaults(token), onOrphan: 'reject', dispatch: false, ...changes });
  }

  /**
   * Claims the key, and returns the generation.
   * @throws Error if the store does not grant the claim
   */
  async claim(token: string, overrides: Partial<BeginCommand> = {}): Promise<number> {
    const reply = await this.begin(token, overrides);
    if (reply.kind !== 'claimed')
      throw new Error(`the store must grant the claim to ${token}, but it returned ${reply.kind}`);
    return reply.generation;
  }

  async extend(token: string, generation: number, fingerprint = 'f'): Promise<HeldReply> {
    return this.store.extend(ID, { ...defaults(token), generation, fingerprint });
  }

  async dispatch(token: string, generation: number, fingerprint = 'f'): Promise<HeldReply> {
    return this.store.dispatch(ID, { ...defaults(token), generation, fingerprint });
  }

  async complete(token: string, result = resultWith(token), fingerprint = 'f'): Promise<CompleteReply> {
    return this.store.complete(ID, { ...defaults(token), result, fingerprint });
  }

  async abandon(token: string, generation?: number, fingerprint = 'f'): Promise<AbandonReply> {
    const releasedRetentionMs = RELEASED_RETENTION_MS;
    return this.store.abandon(ID, { ...defaults(token), releasedRetentionMs, generation, fingerprint });
  }

  async inspect(): Promise<ClaimView | undefined> {
    return this.store.inspect(ID);
  }

  /** Advances the clock to the millisecond at which the lease expires. */
  expireLease(): void {
    this.clock.advance(LEASE_MS);
  }

  /** Advances the clock to the millisecond at which the retention of a claim ends that was released just now. */
  expireReleased(): void {
    this.clock.advance(RELEASED_RETENTION_MS);
  }

  /** Advances the clock to the millisecond at which the retention of the last write ends. */
  expireRetention(): void {
    this.clock.advance(RETENTION_MS);
  }
}

function defaults(token: string): {
  readonly token: string;
  readonly fingerprint: string;
  readonly leaseMs: number;
  readonly retentionMs: number;
} {
  return { token, fingerprint: 'f', leaseMs: LEASE_MS, retentionMs: RETENTION_MS };
}
