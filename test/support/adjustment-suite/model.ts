import type { Synchronous } from '../../../src/base/maybe-promise.ts';
import type { Adjustment, AdjustmentEntry, Head } from '../../../src/core/adjustment.ts';
import type { Clock } from '../../../src/core/clock.ts';
import type { AdjustmentStore } from '../../../src/shared-limits/ports.ts';

/** A store that is as simple as possible, to judge others. It never returns a promise. */
export type AdjustmentModel = Synchronous<AdjustmentStore>;

/** A process that has said that it lives. */
interface Heard {
  readonly name: string;
  readonly head: Head | undefined;
  readonly at: number;
}

const LISTED_MS = 10_000;

/** Creates the naive model of an {@link AdjustmentStore}. Its histories are short, so it has no bounds. */
export function createAdjustmentModel(clock: Clock): AdjustmentModel {
  let base: readonly Adjustment[] = [];
  let known: readonly AdjustmentEntry[] = [];
  let added: readonly AdjustmentEntry[] = [];
  let heard: readonly Heard[] = [];
  const entries = () => [...known, ...added];
  const head = () => headOf(entries().at(-1));
  const isHead = (seen: Head | undefined) => same(seen, head());
  const adjustments = () => added.reduce(change, base);
  return {
    durable: false,
    read(seen, name) {
      const now = clock.now();
      if (name !== undefined) heard = [...heard.filter((one) => one.name !== name), { name, head: seen, at: now }];
      const last = head();
      if (last === undefined) return { kind: 'none', now };
      if (isHead(seen)) return { kind: 'same', now };
      const all = entries();
      const at = all.findIndex((entry) => same(headOf(entry), seen));
      if (at >= 0) return { kind: 'changes', now, entries: all.slice(at + 1) };
      return { kind: 'all', now, state: { head: last, adjustments: adjustments(), recent: all } };
    },
    append(seen, entry) {
      if (!isHead(seen)) return false;
      added = [...added, entry];
      return true;
    },
    restore(seen, state) {
      if (!isHead(seen)) return false;
      base = state.adjustments;
      known = state.recent;
      added = [];
      return true;
    },
    history: (before = Number.POSITIVE_INFINITY, limit) =>
      entries()
        .filter(({ version }) => version < before)
        .reverse()
        .slice(0, limit),
    instances: () =>
      heard.map(({ at, ...one }) => ({ ...one, ageMs: clock.now() - at })).filter(({ ageMs }) => ageMs <= LISTED_MS),
  };
}

function change(adjustments: readonly Adjustment[], entry: AdjustmentEntry): readonly Adjustment[] {
  const { version, by, reason, at } = entry;
  return entry.limits.reduce<readonly Adjustment[]>((before, { target, to: windows, until }) => {
    const others = before.filter((one) => nameOf(one) !== nameOf({ target }));
    return windows === undefined ? others : [...others, { target, windows, version, by, reason, at, until }];
  }, adjustments);
}

function nameOf({ target: { account, provider, plan, route } }: Pick<Adjustment, 'target'>): string {
  return JSON.stringify([account ?? null, provider ?? null, plan ?? null, route ?? null]);
}

function headOf(entry: AdjustmentEntry | undefined): Head | undefined {
  return entry && { version: entry.version, nonce: entry.nonce };
}

function same(one: Head | undefined, other: Head | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other && { version: other.version, nonce: other.nonce });
}
