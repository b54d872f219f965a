import type FastCheck from 'fast-check';
import type { ClaimId, ClaimStore } from '../core/ports.ts';
import { type ClaimAction, createClaimArbitraries } from './claim-arbitraries.ts';
import { CLAIM_CASES } from './claim-cases.ts';
import { type ClaimModel, createClaimModel } from './claim-model.ts';
import { ClaimWorld, resultOf } from './claim-world.ts';
import { equal } from './equal.ts';
import { createFakeClock, type FakeClock } from './fake-clock.ts';
import type { SuiteRunner } from './limit-store-suite.ts';

/** The claim store to be judged. */
export interface ClaimStoreSubject {
  readonly name: string;
  /** A new, empty store that tells time by `clock`. Called for every history and every rule. */
  create(clock: FakeClock): ClaimStore | Promise<ClaimStore>;
  /** Lets go of it. */
  destroy?(store: ClaimStore): void | Promise<void>;
  /**
   * Random histories to live through.
   * @default 500
   */
  readonly histories?: number;
}

/** Attempts that meet in a race. */
const RACERS = 50;

/**
 * Judges a claim store of yours: by the naive model over random histories, by the rules, by every wrong variant of the protocol that a
 * store could be, and by races.
 * @example
 * ```ts
 * claimStoreSuite({ describe, it }, fc, { name: 'mine', create: (clock) => createMyClaimStore({ clock }) });
 * ```
 */
export function claimStoreSuite({ describe, it }: SuiteRunner, fc: typeof FastCheck, subject: ClaimStoreSubject): void {
  const { name, histories = 500 } = subject;
  const inWorld = async (run: (world: ClaimWorld) => Promise<void>): Promise<void> => {
    const clock = createFakeClock(1_000_000_000_000);
    const store = await subject.create(clock);
    try {
      await run(new ClaimWorld(store, clock));
    } finally {
      await subject.destroy?.(store);
    }
  };

  describe(`${name} as a claim store`, () => {
    it(`answers as the naive model in ${histories} random histories`, () => {
      const property = fc.asyncProperty(createClaimArbitraries(fc).history, (history) =>
        inWorld(({ store, clock }) => new Replay(store, clock).run(history)),
      );
      return fc.assert(property, { numRuns: histories });
    }, 300_000);

    for (const { name: rule, run } of CLAIM_CASES) it(rule, () => inWorld(run));

    it(`I5: of ${RACERS} begins at once, one is given the claim`, () =>
      inWorld(async (world) => {
        const replies = await Promise.all(racers().map((token) => world.begin(token)));
        equal(countOf(replies, 'claimed'), 1);
        equal(countOf(replies, 'in_progress'), RACERS - 1);
      }));

    it(`I9: of ${RACERS} takeovers at once, one succeeds`, () =>
      inWorld(async (world) => {
        await world.claim('first', { dispatch: true });
        world.lapse();
        const replies = await Promise.all(racers().map((token) => world.begin(token, { onOrphan: 'reexecute' })));
        equal(countOf(replies, 'claimed'), 1);
        equal((await world.inspect())?.generation, 2);
      }));

    it(`I10: of ${RACERS} outcomes at once, one is kept, and every loser is told it`, () =>
      inWorld(async (world) => {
        await world.claim('r0', { dispatch: true });
        const replies = await Promise.all(racers().map((token) => world.complete(token)));
        equal(countOf(replies, 'ok'), 1);
        const winner = racers()[replies.findIndex(({ kind }) => kind === 'ok')] as string;
        const told = replies.flatMap((reply) => (reply.kind === 'superseded' ? [reply.result] : []));
        equal(told, Array(RACERS - 1).fill(resultOf(winner)));
        equal(await world.begin('late'), { kind: 'settled', result: resultOf(winner) });
      }));

    it(
      'I2: scopes and keys of any kind never meet',
      () =>
        inWorld(async (world) => {
          const ids = NAMES.flatMap((scope) => NAMES.map((key) => ({ scope, key })));
          for (const id of ids) equal((await world.begin('a', { id })).kind, 'claimed');
          for (const id of ids) equal((await world.begin('b', { id })).kind, 'in_progress');
        }),
      60_000,
    );

    it(
      'I4: a result of any characters comes back as it was',
      () =>
        inWorld(async ({ store }) => {
          for (const value of [...NAMES, '\r\n', 'x'.repeat(1_048_576), undefined]) {
            const id: ClaimId = { scope: 'values', key: String(value).slice(0, 100) + String(value?.length) };
            const common = { token: value ?? 'none', fingerprint: value ?? 'none', retentionMs: 1_000 };
            const result = { status: value ?? 'none', value };
            await store.complete(id, { ...common, result });
            const begin = { ...common, token: 'b', leaseMs: 1, onOrphan: 'reject', dispatch: false } as const;
            equal(await store.begin(id, begin), { kind: 'settled', result });
          }
        }),
      60_000,
    );
  });
}

/** As strings come: empty, with what keys are made of, and what no encoding but one keeps apart. */
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

/** A store and the model, living through one history. */
class Replay {
  readonly #store: ClaimStore;
  readonly #clock: FakeClock;
  readonly #model: ClaimModel;
  /** What each token was told last for a key. */
  readonly #told = new Map<string, number>();

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
    equal(await this.#send(this.#store, action), await this.#send(this.#model, action));
    equal(await this.#store.inspect(action.id), this.#model.inspect(action.id));
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
        if (reply.kind === 'claimed') this.#told.set(nameOf(id, token), reply.generation);
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
        const { generation } = action;
        return to.abandon(id, {
          ...common,
          generation: generation === undefined ? undefined : this.#generation(id, token, generation),
        });
      }
    }
  }

  #generation(id: ClaimId, token: string, difference: number): number {
    return (this.#told.get(nameOf(id, token)) ?? 1) + difference;
  }

  #moveToEdge({ id, of, offset }: Extract<ClaimAction, { type: 'edge' }>): void {
    const view = this.#model.inspect(id);
    if (view === undefined) return;
    this.#clock.advance(Math.max(0, (of === 'lease' ? view.leaseMs : view.keptMs) + offset));
  }
}

function nameOf({ scope, key }: ClaimId, token: string): string {
  return JSON.stringify([scope, key, token]);
}
