import type FastCheck from 'fast-check';
import type { OnOrphan } from '../core/claim.ts';
import type { ClaimId } from '../core/ports.ts';

interface OfOwner {
  readonly id: ClaimId;
  readonly token: string;
  readonly fingerprint: string;
  readonly retentionMs: number;
}

/**
 * One step in the life of a few keys. Plain data, so that a failing history can be kept as JSON. A `generation` is given as a difference
 * to what the token was told last: 0 is what an honest owner says.
 */
export type ClaimAction =
  | (OfOwner & {
      readonly type: 'begin';
      readonly leaseMs: number;
      readonly onOrphan: OnOrphan;
      readonly dispatch: boolean;
      /** Milliseconds from now until the command's deadline. */
      readonly deadlineMs?: number | undefined;
    })
  | (OfOwner & { readonly type: 'extend' | 'dispatch'; readonly leaseMs: number; readonly generation: number })
  | (OfOwner & { readonly type: 'complete'; readonly status: string; readonly value?: string | undefined })
  | (OfOwner & { readonly type: 'abandon'; readonly generation?: number | undefined })
  | { readonly type: 'advance'; readonly ms: number }
  /** To `offset` ms after the end of the key's lease, or of its retention. */
  | { readonly type: 'edge'; readonly id: ClaimId; readonly of: 'lease' | 'retention'; readonly offset: number };

/** Options of {@link createClaimArbitraries}. */
export interface ClaimArbitrariesOptions {
  /** Few, so that owners meet. */
  readonly ids?: readonly ClaimId[];
  /** As few: what owners prove themselves with. */
  readonly tokens?: readonly string[];
  /** @default 60 */
  readonly maxActions?: number;
}

/** What {@link createClaimArbitraries} makes. */
export interface ClaimArbitraries {
  readonly action: FastCheck.Arbitrary<ClaimAction>;
  readonly history: FastCheck.Arbitrary<readonly ClaimAction[]>;
}

const IDS: readonly ClaimId[] = [
  { scope: 'app', key: 'k' },
  { scope: 'app', key: 'l' },
];

/**
 * Arbitraries of what happens to claims. fast-check is passed in, so that `headgate/testing` loads without it.
 * @example
 * const { history } = createClaimArbitraries(fc);
 */
export function createClaimArbitraries(fc: typeof FastCheck, options: ClaimArbitrariesOptions = {}): ClaimArbitraries {
  const { ids = IDS, tokens = ['a', 'b', 'c', 'd'], maxActions = 60 } = options;
  const oneOf = fc.constantFrom;
  const mostly = <T, U>(usual: FastCheck.Arbitrary<T>, rare: FastCheck.Arbitrary<U>): FastCheck.Arbitrary<T | U> =>
    fc.oneof({ arbitrary: usual, weight: 8 }, { arbitrary: rare, weight: 1 });

  const id = oneOf(...ids);
  const leaseMs = mostly(fc.nat(60), fc.integer({ min: 0, max: 86_400_000 }));
  const owner = {
    id,
    token: oneOf(...tokens),
    fingerprint: mostly(oneOf('f'), oneOf('g')),
    // Mostly longer than a lease, or nobody would ever meet.
    retentionMs: mostly(fc.integer({ min: 60, max: 600 }), fc.oneof(fc.nat(60), oneOf(86_400_000))),
  };
  const generation = mostly(oneOf(0), oneOf(-1, 1));
  const value = fc.oneof(oneOf(undefined), fc.string({ unit: 'binary', maxLength: 8 }));

  const begin = fc.record({
    type: oneOf('begin' as const),
    ...owner,
    leaseMs,
    onOrphan: oneOf('reject' as const, 'reexecute' as const, 'reconcile' as const),
    dispatch: fc.boolean(),
    deadlineMs: mostly(oneOf(undefined), fc.integer({ min: -1, max: 1 })),
  });
  const held = fc.record({ type: oneOf('extend' as const, 'dispatch' as const), ...owner, leaseMs, generation });
  const complete = fc.record({ type: oneOf('complete' as const), ...owner, status: oneOf('200', '500'), value });
  const abandon = fc.record({
    type: oneOf('abandon' as const),
    ...owner,
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
    { arbitrary: held, weight: 8 },
    { arbitrary: complete, weight: 2 },
    { arbitrary: abandon, weight: 4 },
    { arbitrary: advance, weight: 3 },
    { arbitrary: edge, weight: 4 },
  );
  return {
    action,
    // 'max' makes all lengths as likely: fast-check would mostly draw histories of a few actions.
    history: fc.array(action, { minLength: 1, maxLength: maxActions, size: 'max' }),
  };
}
