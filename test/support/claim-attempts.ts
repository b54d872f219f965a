import fc from 'fast-check';
import type { KeptResult, OnOrphan } from '../../src/core/claim.ts';
import type { ClaimStore } from '../../src/core/ports.ts';
import type { FakeClock } from '../../src/testing/fake-clock.ts';

const ID = { scope: 'app', key: 'k' };
const LEASE_MS = 1_000;
const COMMON = { fingerprint: 'f', retentionMs: 86_400_000, releasedRetentionMs: 600_000 };

/** What one attempt does, if the store grants it the claim. */
export interface Fate {
  /** How it ends: it completes, dies at some point, or releases the key. */
  readonly ends:
    | 'done'
    | 'dead before dispatch'
    | 'dead after dispatch'
    | 'dead after the effect'
    | 'own 429'
    | 'refused by the provider';
  /** Dispatches with the same command that claims. */
  readonly fused: boolean;
  readonly extends: boolean;
  /** Commands that are sent a second time; the copy may arrive at any time. */
  readonly twice: readonly ('begin' | 'extend' | 'dispatch' | 'complete' | 'abandon')[];
}

export const fate: fc.Arbitrary<Fate> = fc.record({
  ends: fc.constantFrom(
    'done' as const,
    'done' as const,
    'done' as const,
    'dead before dispatch' as const,
    'dead after dispatch' as const,
    'dead after the effect' as const,
    'own 429' as const,
    'refused by the provider' as const,
  ),
  fused: fc.boolean(),
  extends: fc.boolean(),
  twice: fc.subarray([
    'begin' as const,
    'extend' as const,
    'dispatch' as const,
    'complete' as const,
    'abandon' as const,
  ]),
});

/** What really happened, independent of the store's records. */
export interface Witness {
  /** Attempts that had the effect. */
  readonly effects: string[];
  /** Results that clients got. */
  readonly answers: KeptResult[];
}

/** A few attempts at one key, and a clock that ends leases meanwhile. The scheduler chooses the order of everything. */
export class Attempts {
  readonly witness: Witness = { effects: [], answers: [] };

  constructor(
    readonly store: ClaimStore,
    readonly clock: FakeClock,
    readonly scheduler: fc.Scheduler,
    readonly onOrphan: OnOrphan,
  ) {}

  /** Runs all attempts, and advances the clock by one lease `lapses` times. */
  async run(fates: readonly Fate[], lapses: number): Promise<void> {
    const attempts = fates.map((each, i) => this.#attempt(`t${i}`, each));
    const time = Array.from({ length: lapses }, () => this.#soon('lapse', () => this.clock.advance(LEASE_MS)));
    await this.scheduler.waitFor(Promise.all([...attempts, ...time]));
    // Waits for copies that have not arrived.
    await this.scheduler.waitIdle();
  }

  /** One more retry, after everything has ended. */
  async retry(onOrphan = this.onOrphan): Promise<{ readonly kind: string; readonly result?: KeptResult }> {
    this.clock.advance(LEASE_MS);
    const command = { ...COMMON, token: 'last', leaseMs: LEASE_MS, onOrphan, dispatch: false };
    return this.store.begin(ID, command);
  }

  async #attempt(token: string, { ends, fused, extends: renews, twice }: Fate): Promise<void> {
    const common = { ...COMMON, token };
    const send = <Reply>(name: Fate['twice'][number], command: () => Reply | Promise<Reply>): Promise<Reply> => {
      if (twice.includes(name)) void this.#soon(`${token} ${name}, copy`, command);
      return this.#soon(`${token} ${name}`, command);
    };

    const claim = await send('begin', () =>
      this.store.begin(ID, { ...common, leaseMs: LEASE_MS, onOrphan: this.onOrphan, dispatch: fused }),
    );
    if (claim.kind === 'settled') this.witness.answers.push(claim.result);
    if (claim.kind !== 'claimed') return;
    const { generation } = claim;
    const ownerCommand = { ...common, leaseMs: LEASE_MS, generation };
    if (ends === 'dead before dispatch') return;
    if (renews) {
      const renewed = await send('extend', () => this.store.extend(ID, ownerCommand));
      if (renewed.kind === 'settled') this.witness.answers.push(renewed.result);
      if (renewed.kind !== 'ok') return;
    }
    if (ends === 'own 429') {
      await send('abandon', () => this.store.abandon(ID, { ...common, generation }));
      return;
    }
    if (!claim.dispatched) {
      const marked = await send('dispatch', () => this.store.dispatch(ID, ownerCommand));
      if (marked.kind === 'settled') this.witness.answers.push(marked.result);
      if (marked.kind !== 'ok') return;
    }
    if (ends === 'dead after dispatch') return;
    if (ends === 'refused by the provider') {
      await send('abandon', () => this.store.abandon(ID, { ...common, generation }));
      return;
    }
    // Any time may pass between the dispatch and the effect.
    await this.#soon(`${token} causes the effect`, () => this.witness.effects.push(token));
    if (ends === 'dead after the effect') return;
    const result = { status: '200', value: token };
    const completed = await send('complete', () => this.store.complete(ID, { ...common, result }));
    // A store that loses no data never loses an outcome.
    if (completed.kind === 'lost') throw new Error(`${token}'s outcome was lost`);
    this.witness.answers.push(completed.kind === 'superseded' ? completed.result : result);
  }

  #soon<T>(label: string, run: () => T | Promise<T>): Promise<T> {
    return this.scheduler.schedule(Promise.resolve(), label).then(run);
  }
}

/** A history of up to four attempts, with at most one death or release each. */
export const race = fc.record({
  fates: fc.array(fate, { minLength: 2, maxLength: 4 }),
  lapses: fc.nat(4),
});
