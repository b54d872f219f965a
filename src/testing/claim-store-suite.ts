import type FastCheck from 'fast-check';
import type { ClaimId, ClaimPage, ClaimStore } from '../core/ports.ts';
import { assertEqual } from './assert-equal.ts';
import { type ClaimAction, createClaimArbitraries } from './claim-arbitraries.ts';
import { CLAIM_CASES } from './claim-cases.ts';
import { ClaimFixture, resultWith } from './claim-fixture.ts';
import { CLAIM_LIST_CASES } from './claim-list-cases.ts';
import { type ClaimModel, createClaimModel } from './claim-model.ts';
import { createFakeClock, type FakeClock } from './fake-clock.ts';
import type { SuiteRunner } from './limit-store-suite.ts';

/** The claim store under test. */
export interface ClaimStoreSubject {
  readonly name: string;
  /** Returns a new, empty store that uses `clock`. Called for every history and every rule. */
  create(clock: FakeClock): ClaimStore | Promise<ClaimStore>;
  /** Releases the resources of the store. */
  destroy?(store: ClaimStore): void | Promise<void>;
  /**
   * Number of random histories.
   * @default 500
   */
  readonly histories?: number;
}

/** Number of attempts in a race. */
const RACERS = 50;

/**
 * Tests a claim store: against the naive model over random histories, by the rules, for every wrong variant of the
 * protocol that a store could implement, and in races.
 * @example
 * ```ts
 * claimStoreSuite({ describe, it }, fc, { name: 'mine', create: (clock) => createMyClaimStore({ clock }) });
 * ```
 */
export function claimStoreSuite({ describe, it }: SuiteRunner, fc: typeof FastCheck, subject: ClaimStoreSubject): void {
  const { name, histories = 500 } = subject;
  const withFixture = async (run: (fixture: ClaimFixture) => Promise<void>): Promise<void> => {
    const clock = createFakeClock(1_000_000_000_000);
    const store = await subject.create(clock);
    try {
      await run(new ClaimFixture(store, clock));
    } finally {
      await subject.destroy?.(store);
    }
  };

  describe(`${name} as a claim store`, () => {
    it(`replies as the naive model does, in ${histories} random histories`, () => {
      const property = fc.asyncProperty(createClaimArbitraries(fc).history, (history) =>
        withFixture(({ store, clock }) => new HistoryRun(store, clock).run(history)),
      );
      return fc.assert(property, { numRuns: histories });
    }, 300_000);

    for (const [rule, run] of Object.entries(CLAIM_CASES)) it(rule, () => withFixture(run));

    // A store without `list` skips them.
    for (const [title, run] of Object.entries(CLAIM_LIST_CASES)) {
      it(
        title,
        () =>
          withFixture(async (fixture) => {
            const { store } = fixture;
            if (store.list !== undefined)
              await run(fixture, async (cursor, count) => store.list?.(cursor, count) as ClaimPage);
          }),
        60_000,
      );
    }

    it(`I5: of ${RACERS} simultaneous begins, one gets the claim`, () =>
      withFixture(async (fixture) => {
        const replies = await Promise.all(racers().map((token) => fixture.begin(token)));
        assertEqual(countOf(replies, 'claimed'), 1);
        assertEqual(countOf(replies, 'in_progress'), RACERS - 1);
      }));

    it(`I9: of ${RACERS} simultaneous takeovers, one succeeds`, () =>
      withFixture(async (fixture) => {
        await fixture.claim('first', { dispatch: true });
        fixture.expireLease();
        const replies = await Promise.all(racers().map((token) => fixture.begin(token, { onOrphan: 'reexecute' })));
        assertEqual(countOf(replies, 'claimed'), 1);
        assertEqual((await fixture.inspect())?.generation, 2);
      }));

    it(`I10: of ${RACERS} simultaneous outcomes, one is stored, and every loser gets it`, () =>
      withFixture(async (fixture) => {
        await fixture.claim('r0', { dispatch: true });
        const replies = await Promise.all(racers().map((token) => fixture.complete(token)));
        assertEqual(countOf(replies, 'ok'), 1);
        const winner = racers()[replies.findIndex(({ kind }) => kind === 'ok')] as string;
        const received = replies.flatMap((reply) => (reply.kind === 'superseded' ? [reply.result] : []));
        assertEqual(received, Array(RACERS - 1).fill(resultWith(winner)));
        assertEqual(await fixture.begin('late'), { kind: 'settled', result: resultWith(winner) });
      }));

    it(
      'I2: two different scopes or keys are never confused, whatever their characters',
      () =>
        withFixture(async (fixture) => {
          const ids = NAMES.flatMap((scope) => NAMES.map((key) => ({ scope, key })));
          for (const id of ids) assertEqual((await fixture.begin('a', { id })).kind, 'claimed');
          for (const id of ids) assertEqual((await fixture.begin('b', { id })).kind, 'in_progress');
        }),
      60_000,
    );

    it(
      'I4: a result is returned unchanged, whatever its characters',
      () =>
        withFixture(async ({ store }) => {
          for (const value of [...NAMES, '\r\n', 'x'.repeat(1_048_576), undefined]) {
            const id: ClaimId = { scope: 'values', key: String(value).slice(0, 100) + String(value?.length) };
            const common = { token: value ?? 'none', fingerprint: value ?? 'none', retentionMs: 1_000 };
            const result = { status: value ?? 'none', value };
            await store.complete(id, { ...common, result });
            const begin = { ...common, token: 'b', leaseMs: 1, onOrphan: 'reject', dispatch: false } as const;
            assertEqual(await store.begin(id, begin), { kind: 'settled', result });
          }
        }),
      60_000,
    );
  });
}

/**
 * Difficult names: the empty string, characters with which stores build their keys, and strings that a lossy encoding
 * would merge.
 */
const NAMES = [
  '',
  '%',
  '{',
  '}',
  '{}',
  'a}',
  'a:b',
  ':',
  ':a',
  '%003a',
  '=',
  '~',
  '__proto__',
  'ü',
  '\ud800',
  '\udfff',
  '\ufffd',
  '*',
  'a\u0000',
];

function racers(): string[] {
  return Array.from({ length: RACERS }, (_, i) => `r${i}`);
}

function countOf(replies: readonly { readonly kind: string }[], kind: string): number {
  return replies.filter((reply) => reply.kind === kind).length;
}

/** Runs one history on the store and on the model, and compares their replies. */
class HistoryRun {
  readonly #store: ClaimStore;
  readonly #clock: FakeClock;
  readonly #model: ClaimModel;
  /** The last generation that each token got, by key. */
  readonly #generations = new Map<string, number>();

  constructor(store: ClaimStore, clock: FakeClock) {
    this.#store = store;
    this.#clock = clock;
    this.#model = createClaimModel(clock);
  }

  async run(history: readonly ClaimAction[]): Promise<void> {
    for (const [step, action] of history.entries()) {
      try {
        await this.#step(action);
      } catch (error) {
        throw new Error(`step ${step}, ${JSON.stringify(action)}`, { cause: error });
      }
    }
  }

  async #step(action: ClaimAction): Promise<void> {
    if (action.type === 'advance') return this.#clock.advance(action.ms);
    if (action.type === 'edge') return this.#moveToEdge(action);
    assertEqual(await this.#send(this.#store, action), await this.#send(this.#model, action));
    assertEqual(await this.#store.inspect(action.id), this.#model.inspect(action.id));
  }

  async #send(
    to: ClaimModel | ClaimStore,
    action: Exclude<ClaimAction, { type: 'advance' | 'edge' }>,
  ): Promise<unknown> {
    const { id, token, fingerprint, retentionMs } = action;
    const common = { token, fingerprint, retentionMs };
    switch (action.type) {
      case 'begin': {
        const { leaseMs, onOrphan, dispatch, deadlineMs } = action;
        const deadline = deadlineMs === undefined ? undefined : this.#clock.now() + deadlineMs;
        const reply = await to.begin(id, { ...common, leaseMs, onOrphan, dispatch, deadline });
        if (reply.kind === 'claimed') this.#generations.set(generationKey(id, token), reply.generation);
        return reply;
      }
      case 'extend':
      case 'dispatch': {
        const generation = this.#generation(id, token, action.generation);
        return to[action.type](id, { ...common, leaseMs: action.leaseMs, generation });
      }
      case 'complete':
        return to.complete(id, { ...common, result: { status: action.status, value: action.value } });
      case 'abandon': {
        const { generation, releasedRetentionMs } = action;
        return to.abandon(id, {
          ...common,
          releasedRetentionMs,
          generation: generation === undefined ? undefined : this.#generation(id, token, generation),
        });
      }
    }
  }

  #generation(id: ClaimId, token: string, difference: number): number {
    return (this.#generations.get(generationKey(id, token)) ?? 1) + difference;
  }

  #moveToEdge({ id, of, offset }: Extract<ClaimAction, { type: 'edge' }>): void {
    const view = this.#model.inspect(id);
    if (view === undefined) return;
    this.#clock.advance(Math.max(0, (of === 'lease' ? view.leaseMs : view.keptMs) + offset));
  }
}

function generationKey({ scope, key }: ClaimId, token: string): string {
  return JSON.stringify([scope, key, token]);
}
