import type FastCheck from 'fast-check';
import type {
  AdjustedLimit,
  AdjustmentEntry,
  AdjustmentState,
  AdjustTarget,
  Head,
} from '../../../src/core/adjustment.ts';
import { MAX_RECENT } from '../../../src/core/adjustment.ts';
import type { AdjustmentStore } from '../../../src/shared-limits/ports.ts';
import { assertEqual } from '../../../src/testing/assert-equal.ts';
import { createFakeClock, type FakeClock } from '../../../src/testing/fake-clock.ts';
import type { SuiteRunner } from '../../../src/testing/limit-store-suite.ts';
import { type AdjustmentModel, createAdjustmentModel } from './model.ts';

/** The store of adjustments under test. */
export interface AdjustmentStoreSubject {
  readonly name: string;
  /** Returns a new, empty store that uses `clock`. Called for every history and every case. */
  create(clock: FakeClock): AdjustmentStore | Promise<AdjustmentStore>;
  /** Releases what the store uses. */
  destroy?(store: AdjustmentStore): void | Promise<void>;
  /**
   * Number of random histories.
   * @default 200
   */
  readonly histories?: number;
}

/** One step of a history. `seen` picks a head: most often the store's own, else an earlier one or a wrong one. */
type Action =
  | { readonly type: 'read'; readonly seen: number; readonly instance?: string | undefined }
  | { readonly type: 'append' | 'restore'; readonly seen: number; readonly limits: readonly AdjustedLimit[] }
  | { readonly type: 'history'; readonly before?: number | undefined; readonly limit: number }
  | { readonly type: 'instances' }
  | { readonly type: 'advance'; readonly ms: number };

/** Targets with difficult names: two of them must never be taken for one. */
const TARGETS: readonly AdjustTarget[] = [
  {},
  { route: '' },
  { account: '' },
  { account: '__proto__' },
  { account: '["account"]' },
  { account: '\ud800' },
  { account: '\udfff' },
  { account: '\ufffd', route: '@head' },
  { provider: 'a' },
  { plan: 'a' },
  { account: 'a' },
  { account: 'a', route: 'POST /ü/{id}' },
];
const START = 1_000_000_000_000;
const RACERS = 16;

/**
 * Tests a store of adjustments: against the naive model over random histories, at its bounds, and in races.
 * @example
 * ```ts
 * adjustmentStoreSuite({ describe, it }, fc, { name: 'mine', create: (clock) => createMyAdjustments({ clock }) });
 * ```
 */
export function adjustmentStoreSuite(
  { describe, it }: SuiteRunner,
  fc: typeof FastCheck,
  subject: AdjustmentStoreSubject,
): void {
  const { name, histories = 200 } = subject;
  const withStore = async (run: (store: AdjustmentStore, clock: FakeClock) => Promise<void>): Promise<void> => {
    const clock = createFakeClock(START);
    const store = await subject.create(clock);
    try {
      await run(store, clock);
    } finally {
      await subject.destroy?.(store);
    }
  };

  describe(`${name} as a store of adjustments`, () => {
    it(`replies as the naive model does, in ${histories} random histories`, () => {
      const property = fc.asyncProperty(historiesOf(fc), (history) =>
        withStore((store, clock) => new HistoryRun(store, clock).run(history)),
      );
      return fc.assert(property, { numRuns: histories });
    }, 300_000);

    it(`of ${RACERS} simultaneous changes of one head, one is stored`, () =>
      withStore(async (store) => {
        let seen: Head | undefined;
        for (let version = 1; version <= 3; version++) {
          const heads = Array.from({ length: RACERS }, (_, i) => ({ version, nonce: `n${version}.${i}` }));
          const replies = await Promise.all(heads.map((head) => store.append(seen, entryOf(head))));
          assertEqual(replies.filter((stored) => stored).length, 1);
          seen = heads[replies.indexOf(true)];
          assertEqual((await store.read(seen)).kind, 'same');
        }
      }));

    it(
      `returns at most ${MAX_RECENT} changes, and everything after more`,
      () =>
        withStore(async (store) => {
          const entries = Array.from({ length: MAX_RECENT }, (_, i) => entryOf({ version: i + 1, nonce: `n${i}` }));
          await store.restore(undefined, stateOf(entries));
          await store.append(headOf(entries.at(-1)), entryOf({ version: MAX_RECENT + 1, nonce: 'last' }));
          const readAfter = async (known: Head | undefined): Promise<unknown[]> => {
            const reply = await store.read(known);
            if (reply.kind === 'changes') return ['changes', reply.entries.length];
            return reply.kind === 'all' ? ['all', reply.state.recent.length, reply.state.head.version] : [reply.kind];
          };
          assertEqual(await readAfter(headOf(entries[0])), ['changes', MAX_RECENT]);
          assertEqual(await readAfter({ version: 0, nonce: 'before' }), ['all', MAX_RECENT, MAX_RECENT + 1]);
        }),
      60_000,
    );

    it(
      'a large state comes back whole',
      () =>
        withStore(async (store) => {
          const entry: AdjustmentEntry = {
            ...entryOf({ version: 1, nonce: 'n' }),
            limits: Array.from({ length: 10_000 }, (_, i) => limitOf({ account: `acc_${i}` }, 5)),
          };
          assertEqual(await store.append(undefined, entry), true);
          const reply = await store.read(undefined);
          assertEqual(reply.kind === 'all' && reply.state.adjustments.length, 10_000);
          assertEqual(reply.kind === 'all' && (await store.restore(reply.state.head, reply.state)), true);
          assertEqual((await store.read({ version: 1, nonce: 'n' })).kind, 'same');
        }),
      60_000,
    );
  });
}

function historiesOf(fc: typeof FastCheck): FastCheck.Arbitrary<readonly Action[]> {
  const max = fc.option(fc.nat({ max: 9 }), { nil: undefined });
  const limits = fc
    .uniqueArray(fc.constantFrom(...TARGETS), { minLength: 1, maxLength: 3 })
    .chain((targets) => fc.tuple(...targets.map((target) => max.map((value) => limitOf(target, value)))));
  // Most often 0, the store's own head.
  const seen = fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat({ max: 9 }) });
  const instance = fc.option(fc.constantFrom('one', 'other:1', ''), { nil: undefined });
  const action: FastCheck.Arbitrary<Action> = fc.oneof(
    { weight: 4, arbitrary: fc.record({ type: fc.constant('read' as const), seen, instance }) },
    { weight: 6, arbitrary: fc.record({ type: fc.constant('append' as const), seen, limits }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('restore' as const), seen, limits }) },
    {
      weight: 1,
      arbitrary: fc.record({
        type: fc.constant('history' as const),
        before: fc.option(fc.nat({ max: 20 }), { nil: undefined }),
        limit: fc.integer({ min: 1, max: 5 }),
      }),
    },
    { weight: 2, arbitrary: fc.record({ type: fc.constant('instances' as const) }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('advance' as const), ms: fc.nat({ max: 6_000 }) }) },
  );
  return fc.array(action, { minLength: 1, maxLength: 30, size: 'max' });
}

/** Runs one history on the store and on the model, and compares their replies. */
class HistoryRun {
  readonly #store: AdjustmentStore;
  readonly #clock: FakeClock;
  readonly #model: AdjustmentModel;
  /** Every head of the history, the store's own last. */
  readonly #heads: (Head | undefined)[] = [undefined];
  #nonces = 0;

  constructor(store: AdjustmentStore, clock: FakeClock) {
    this.#store = store;
    this.#clock = clock;
    this.#model = createAdjustmentModel(clock);
  }

  async run(history: readonly Action[]): Promise<void> {
    for (const [step, action] of history.entries()) {
      try {
        await this.#step(action);
      } catch (error) {
        throw new Error(`step ${step}, ${JSON.stringify(action)}`, { cause: error });
      }
    }
    assertEqual(inOrder(await this.#store.read(undefined)), inOrder(this.#model.read(undefined)));
  }

  async #step(action: Action): Promise<void> {
    const [store, model] = [this.#store, this.#model];
    switch (action.type) {
      case 'advance':
        return this.#clock.advance(action.ms);
      case 'read': {
        const seen = this.#head(action.seen);
        const reply = await store.read(seen, action.instance);
        return assertEqual(inOrder(reply), inOrder(model.read(seen, action.instance)));
      }
      case 'history': {
        const { before, limit } = action;
        return assertEqual(inOrder(await store.history(before, limit)), inOrder(model.history(before, limit)));
      }
      case 'instances':
        return assertEqual(inOrder(await store.instances()), inOrder(model.instances()));
      case 'append':
      case 'restore':
        return this.#change(action);
    }
  }

  async #change({ type, seen: pick, limits }: Extract<Action, { readonly limits: unknown }>): Promise<void> {
    const seen = this.#head(pick);
    const head = { version: (this.#heads.at(-1)?.version ?? 0) + 1, nonce: `n${this.#nonces++}` };
    const entry: AdjustmentEntry = { ...entryOf(head), at: this.#clock.now(), reason: 'ü "\u0000\ud800', limits };
    const change = (to: AdjustmentStore) =>
      type === 'append' ? to.append(seen, entry) : to.restore(seen, stateOf([entry]));
    const stored = change(this.#model);
    assertEqual(await change(this.#store), stored);
    if (stored) this.#heads.push(head);
  }

  #head(pick: number): Head | undefined {
    const own = this.#heads.at(-1);
    if (pick === 0) return own;
    // A head of another history: the version is right, and the nonce is not.
    if (pick === 1) return { version: own?.version ?? 1, nonce: 'unknown' };
    return this.#heads[pick % this.#heads.length];
  }
}

function limitOf(target: AdjustTarget, max: number | undefined): AdjustedLimit {
  const to = max === undefined ? undefined : [{ max, durationMs: 60_000 }].slice(max === 9 ? 1 : 0);
  return { target, from: undefined, to, until: max === 8 ? START + 1 : undefined };
}

function entryOf({ version, nonce }: Head): AdjustmentEntry {
  const limits = [limitOf({ account: nonce }, version % 9)];
  return { version, nonce, at: START, by: 'jane', reason: undefined, source: 'change', limits };
}

/** The state in which only the last of the entries has adjusted anything. */
function stateOf(entries: readonly AdjustmentEntry[]): AdjustmentState {
  const last = entries.at(-1) as AdjustmentEntry;
  const { version, by, reason, at } = last;
  const adjustments = last.limits.flatMap(({ target, to, until }) =>
    to === undefined ? [] : [{ target, windows: to, version, by, reason, at, until }],
  );
  return { head: headOf(last) as Head, adjustments, recent: entries };
}

function headOf(entry: AdjustmentEntry | undefined): Head | undefined {
  return entry && { version: entry.version, nonce: entry.nonce };
}

/** A reply in one form: a store may return properties and lists without an order in any order. */
function inOrder(reply: unknown): unknown {
  const listed = (key: string, value: unknown): unknown => {
    if (Array.isArray(value))
      return key === 'adjustments' || key === '' ? [...value].sort((a, b) => (textOf(a) < textOf(b) ? -1 : 1)) : value;
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
  };
  return JSON.parse(JSON.stringify(reply, listed));
}

function textOf(value: unknown): string {
  const { target, name, version } = value as { target?: object; name?: string; version?: number };
  return JSON.stringify([target, name, version]);
}
