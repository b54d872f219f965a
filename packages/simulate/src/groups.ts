import type { GroupFigures, OutcomeMatrix } from './report.ts';

/** Groups past this number are counted together. */
const MAX_GROUPS = 1_000_000;
/** The group of all names past {@link MAX_GROUPS}. */
export const OTHERS = '(others)';

/** No request yet. */
export const emptyMatrix = (): OutcomeMatrix => ({ none: 0, both: 0, onlyCurrent: 0, onlyCandidate: 0 });

/** Counts outcomes by a name. */
export class Groups {
  readonly #groups = new Map<string, GroupFigures>();
  newlyRejected = 0;
  newlyPassed = 0;

  /** @param lockedOutMs how long the window of the candidate's rejection still lasts */
  add(name: string, outcome: keyof OutcomeMatrix, at: number, lockedOutMs: number): void {
    const group = this.#groups.get(name) ?? this.#create(name);
    group[outcome]++;
    if (outcome === 'onlyCurrent' && group.onlyCurrent === 1) this.newlyPassed++;
    if (outcome !== 'onlyCandidate') return;
    if (group.onlyCandidate === 1) {
      this.newlyRejected++;
      group.firstNewlyRejectedAt = at;
    }
    if (lockedOutMs > group.longestLockedOutMs) group.longestLockedOutMs = lockedOutMs;
  }

  /** Those with the most differences first, then those with the most rejections. */
  list(limit = Number.POSITIVE_INFINITY): GroupFigures[] {
    const differences = ({ onlyCandidate, onlyCurrent }: GroupFigures): number => onlyCandidate + onlyCurrent;
    const sorted = [...this.#groups.values()].sort(
      (a, b) =>
        b.onlyCandidate - a.onlyCandidate ||
        differences(b) - differences(a) ||
        b.both - a.both ||
        b.none - a.none ||
        (a.name < b.name ? -1 : 1),
    );
    return sorted.slice(0, limit);
  }

  #create(name: string): GroupFigures {
    if (this.#groups.size >= MAX_GROUPS && name !== OTHERS) return this.#groups.get(OTHERS) ?? this.#create(OTHERS);
    const group = { name, ...emptyMatrix(), firstNewlyRejectedAt: undefined, longestLockedOutMs: 0 };
    this.#groups.set(name, group);
    return group;
  }
}
