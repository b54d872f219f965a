import type FastCheck from 'fast-check';
import type { OnOrphan } from '../core/claim.ts';
import type { ClaimId } from '../core/ports.ts';
import { anyString } from './arbitraries.ts';

interface AttemptAction {
  readonly id: ClaimId;
  readonly token: string;
  readonly fingerprint: string;
  readonly retentionMs: number;
}

/**
 * One step in a history of a few keys. It is plain data, so a failing history can be saved as JSON. `generation` is the
 * difference to the last generation that the token got: an honest owner sends 0.
 */
export type ClaimAction =
  | (AttemptAction & {
      readonly type: 'begin';
      readonly leaseMs: number;
      readonly onOrphan: OnOrphan;
      readonly dispatch: boolean;
      /** Milliseconds from now until the command's deadline. */
      readonly deadlineMs?: number | undefined;
    })
  | (AttemptAction & { readonly type: 'extend' | 'dispatch'; readonly leaseMs: number; readonly generation: number })
  | (AttemptAction & { readonly type: 'complete'; readonly status: string; readonly value?: string | undefined })
  | (AttemptAction & {
      readonly type: 'abandon';
      readonly releasedRetentionMs: number;
      readonly generation?: number | undefined;
    })
  | { readonly type: 'advance'; readonly ms: number }
  /** Moves the clock to `offset` ms after the end of the key's lease, or of its retention. */
  | { readonly type: 'edge'; readonly id: ClaimId; readonly of: 'lease' | 'retention'; readonly offset: number };

/** What {@link createClaimArbitraries} returns. */
export interface ClaimArbitraries {
  readonly action: FastCheck.Arbitrary<ClaimAction>;
  readonly history: FastCheck.Arbitrary<readonly ClaimAction[]>;
}

/** Few, so that attempts often share a key, as their tokens are. */
const IDS: readonly ClaimId[] = [
  { scope: 'app', key: 'k' },
  { scope: 'app', key: 'l' },
];

/**
 * Creates arbitraries of histories of claims. fast-check is a parameter, so that `headgate/testing` loads without it.
 * @example
 * const { history } = createClaimArbitraries(fc);
 */
export function createClaimArbitraries(fc: typeof FastCheck): ClaimArbitraries {
  const oneOf = fc.constantFrom;
  const mostly = <T, U>(usual: FastCheck.Arbitrary<T>, rare: FastCheck.Arbitrary<U>): FastCheck.Arbitrary<T | U> =>
    fc.oneof({ arbitrary: usual, weight: 8 }, { arbitrary: rare, weight: 1 });

  const id = oneOf(...IDS);
  const leaseMs = mostly(fc.nat(60), fc.integer({ min: 0, max: 86_400_000 }));
  const owner = {
    id,
    token: oneOf('a', 'b', 'c', 'd'),
    fingerprint: mostly(oneOf('f'), oneOf('g')),
    // Mostly longer than a lease: otherwise attempts would never find another attempt's claim.
    retentionMs: mostly(fc.integer({ min: 60, max: 600 }), fc.oneof(fc.nat(60), oneOf(86_400_000))),
  };
  const generation = mostly(oneOf(0), oneOf(-1, 1));
  const value = fc.oneof(oneOf(undefined), anyString(fc, 8));

  const begin = fc.record({
    type: oneOf('begin' as const),
    ...owner,
    leaseMs,
    onOrphan: oneOf('reject' as const, 'reexecute' as const, 'reconcile' as const),
    dispatch: fc.boolean(),
    deadlineMs: mostly(oneOf(undefined), fc.integer({ min: -1, max: 1 })),
  });
  const renewal = fc.record({ type: oneOf('extend' as const, 'dispatch' as const), ...owner, leaseMs, generation });
  const complete = fc.record({ type: oneOf('complete' as const), ...owner, status: oneOf('200', '500'), value });
  const abandon = fc.record({
    type: oneOf('abandon' as const),
    ...owner,
    // Mostly shorter than the retention, which is its purpose.
    releasedRetentionMs: mostly(fc.nat(60), oneOf(86_400_000)),
    generation: mostly(generation, oneOf(undefined)),
  });
  const advance = fc.record({ type: oneOf('advance' as const), ms: mostly(fc.nat(40), fc.nat(1_000)) });
  const edge = fc.record({
    type: oneOf('edge' as const),
    id,
    of: mostly(oneOf('lease' as const), oneOf('retention' as const)),
    offset: fc.integer({ min: -1, max: 1 }),
  });
  const action: FastCheck.Arbitrary<ClaimAction> = fc.oneof(
    { arbitrary: begin, weight: 10 },
    { arbitrary: renewal, weight: 8 },
    { arbitrary: complete, weight: 2 },
    { arbitrary: abandon, weight: 4 },
    { arbitrary: advance, weight: 3 },
    { arbitrary: edge, weight: 4 },
  );
  return {
    action,
    // 'max' makes all lengths equally likely. By default fast-check would mostly create histories of a few actions.
    history: fc.array(action, { minLength: 1, maxLength: 60, size: 'max' }),
  };
}
