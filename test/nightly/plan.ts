import { KINDS, type Kind, LANES, STORES, type StoreName } from './subjects.ts';

/** Histories that one worker runs at a time. Each lane of each part has a seed of its own. */
export interface Part {
  readonly store: StoreName;
  readonly kind: Kind;
  readonly histories: number;
  readonly seed: number;
}

/** Which part of all histories a store has, in percent. A history in memory takes a fraction of the time. */
const STORE_SHARES: Readonly<Record<StoreName, number>> = { memory: 50, redis: 30, cluster: 20 };
/** Which part of a store's histories has a kind, in percent. */
const KIND_SHARES: Readonly<Record<Kind, number>> = { limits: 45, claims: 45, adjustments: 10 };
const PART = 1_000;

/** What to run of all histories. */
export interface Selection {
  readonly histories: number;
  readonly seed: number;
  readonly stores?: readonly StoreName[];
  readonly kinds?: readonly Kind[];
}

/** Splits the histories into parts. The stores take turns, so that an early end has run some of each. */
export function planParts({ histories, seed, stores = STORES, kinds = KINDS }: Selection): Part[] {
  const shares = stores.flatMap((store) =>
    kinds.map((kind) => ({ store, kind, share: STORE_SHARES[store] * KIND_SHARES[kind] })),
  );
  const whole = shares.reduce((sum, { share }) => sum + share, 0);
  let [given, before] = [0, 0];
  const placed = shares.flatMap(({ store, kind, share }) => {
    before += share;
    const count = Math.round((histories * before) / whole) - given;
    given += count;
    const parts = Math.ceil(count / PART);
    return Array.from({ length: parts }, (_, i) => {
      return { store, kind, histories: Math.min(PART, count - i * PART), place: (i + 0.5) / parts };
    });
  });
  placed.sort((a, b) => a.place - b.place);
  return placed.map(({ store, kind, histories }, i) => ({ store, kind, histories, seed: (seed + i * LANES) | 0 }));
}

/** Counts of histories by store and kind. */
export type Counts = Readonly<Record<StoreName, Record<Kind, number>>>;

export function noCounts(): Counts {
  const none = (): Record<Kind, number> => ({ limits: 0, claims: 0, adjustments: 0 });
  return { memory: none(), redis: none(), cluster: none() };
}

/** One line per store that has run any. */
export function countLines(counts: Counts): string[] {
  return STORES.flatMap((store) => {
    const all = KINDS.reduce((sum, kind) => sum + counts[store][kind], 0);
    const each = KINDS.map((kind) => `${counts[store][kind].toLocaleString('en-US')} of ${kind}`).join(', ');
    return all === 0 ? [] : [`${store}: ${all.toLocaleString('en-US')} histories (${each})`];
  });
}
