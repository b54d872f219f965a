/** Which protocol brings a store forward that has lost changes, without taking any away that it has. */

import fc from 'fast-check';
import { randomRuns } from 'headgate-testbed/nightly';
import { describe, expect, it } from 'vitest';
import { type Head, isSameHead, targetKey } from '../../src/core/adjustment.ts';
import { parseLimit } from '../../src/core/limit.ts';
import { reconcile, type Step } from '../../src/shared-limits/lineage.ts';
import { Replica } from '../../src/shared-limits/replica.ts';
import { type CallFault, FaultyConnection, NaiveAdjustments } from '../support/naive-adjustments.ts';

const PROCESSES = 3;
/** A call can be late: then it takes a round more until all agree. */
const ROUNDS = 4;

type Action =
  | { readonly type: 'write'; readonly process: number; readonly account: string; readonly max: number | undefined }
  | { readonly type: 'poll' | 'restart' | 'cut' | 'heal'; readonly process: number }
  | { readonly type: 'fault'; readonly process: number; readonly fault: CallFault }
  /** The store is empty; or it has an earlier state of its own again, as after the promotion of an old replica. */
  | { readonly type: 'lose' }
  | { readonly type: 'go-back'; readonly pick: number }
  /** A late call reaches the store. */
  | { readonly type: 'deliver' };

const process = fc.nat({ max: PROCESSES - 1 });
const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('write' as const),
      process,
      account: fc.constantFrom('a', 'b', '__proto__'),
      max: fc.option(fc.nat({ max: 9 }), { nil: undefined }),
    }),
  },
  { weight: 6, arbitrary: fc.record({ type: fc.constantFrom('poll' as const, 'cut', 'heal', 'restart'), process }) },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('fault' as const),
      process,
      fault: fc.constantFrom('unsent' as const, 'unanswered', 'late'),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ type: 'lose' as const }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('go-back' as const), pick: fc.nat({ max: 30 }) }) },
  { weight: 2, arbitrary: fc.constant({ type: 'deliver' as const }) },
);
const history = fc.array(action, { minLength: 4, maxLength: 40 });

/** The protocol, or a variant of it. */
interface Protocol {
  readonly decide: typeof reconcile;
  /** Whether the store compares the head before it is brought forward. */
  readonly compares?: boolean;
}

/** A process that reads the store. */
interface Member {
  readonly connection: FaultyConnection;
  readonly replica: Replica;
}

class World {
  readonly store: NaiveAdjustments;
  readonly #late: (() => void)[] = [];
  readonly #processes: Member[];
  readonly #protocol: Protocol;
  #nonces = 0;

  constructor(protocol: Protocol) {
    this.#protocol = protocol;
    this.store = new NaiveAdjustments(protocol.compares);
    this.#processes = Array.from({ length: PROCESSES }, () => this.#start());
  }

  async run(actions: readonly Action[]): Promise<void> {
    for (const each of actions) {
      await this.#do(each);
    }
    await this.#settle();
  }

  /** All processes reach the store again, and nobody writes any more. */
  async #settle(): Promise<void> {
    for (const { connection } of this.#processes) {
      connection.isCut = false;
      connection.next = undefined;
    }
    for (const execute of this.#late.splice(0)) execute();
    const before = this.store.state?.head;
    const known = [before, ...this.#processes.map(({ replica }) => replica.head)];
    for (let round = 0; round < ROUNDS; round++) for (const { replica } of this.#processes) await replica.refresh();
    const after = this.store.state?.head;
    const made = this.store.adjustmentsAt(after);
    for (const { replica } of this.#processes) expect([replica.head, replica.adjustments]).toEqual([after, made]);
    expect(new Map(this.store.state?.adjustments.map((one) => [targetKey(one.target), one]))).toEqual(made);
    expect([this.store.hasLostByRestore, this.store.follows(after, before)]).toEqual([false, true]);
    // What a process knew is not lost, unless the store's history, or that of the first to bring it back, excludes it.
    expect(known.some((head) => isSameHead(head, after))).toBe(true);
    expect(known.filter((head) => this.#comesAfter(head, after))).toEqual([]);
  }

  #comesAfter(head: Head | undefined, other: Head | undefined): boolean {
    return !isSameHead(head, other) && this.store.follows(head, other);
  }

  #start(): Member {
    const connection = new FaultyConnection(this.store, this.#late);
    return { connection, replica: new Replica(connection, undefined, { decide: this.#protocol.decide }) };
  }

  async #do(step: Action): Promise<void> {
    switch (step.type) {
      case 'lose':
        return this.store.become(undefined);
      case 'go-back':
        return this.store.become(this.store.past[step.pick % this.store.past.length]);
      case 'deliver':
        return this.#late.shift()?.();
      case 'restart':
        this.#processes[step.process] = this.#start();
        return;
    }
    const { connection, replica } = this.#processes[step.process] as Member;
    switch (step.type) {
      case 'cut':
      case 'heal':
        connection.isCut = step.type === 'cut';
        return;
      case 'fault':
        connection.next = step.fault;
        return;
      case 'poll':
        return replica.refresh().catch(() => undefined);
      case 'write': {
        const to = step.max === undefined ? undefined : parseLimit([`${step.max}/1m`]);
        const limits = [{ target: { account: step.account }, from: undefined, to }];
        const nonce = String(this.#nonces++);
        await replica
          .append((head) => {
            const version = (head?.version ?? 0) + 1;
            return { version, nonce, at: 0, by: 'jane', source: 'change', limits };
          })
          .catch(() => undefined);
      }
    }
  }
}

const write = (process: number, max: number): Action => ({ type: 'write', process, account: 'a', max });
/** Back to the state after the first change. */
const goBack: Action = { type: 'go-back', pick: 1 };

/** What goes wrong with protocols that are too simple. */
const HISTORIES: Readonly<Record<string, readonly Action[]>> = {
  'the store loses everything': [write(0, 1), { type: 'lose' }],
  'the store loses its last change': [write(0, 1), write(0, 2), goBack],
  'the store loses its last changes, and another process writes': [
    ...[write(0, 1), write(0, 2), write(0, 3), goBack],
    write(1, 4),
  ],
  'a late call brings the store forward, after another process has written': [
    ...[write(0, 1), write(0, 2), goBack, { type: 'fault', process: 0, fault: 'late' } as const],
    ...[{ type: 'poll', process: 0 } as const, write(1, 3), { type: 'deliver' } as const],
  ],
};

type Reply = Parameters<typeof reconcile>[1];

const adopt = ({ state }: Extract<Reply, { kind: 'all' }>): Step => ({ kind: 'adopt', state, forked: false });

const onlyIfEmpty: typeof reconcile = (known, reply) => (reply.kind === 'all' ? adopt(reply) : reconcile(known, reply));

/** Protocols that leave something out. */
const VARIANTS: Readonly<Record<string, Protocol>> = {
  'the store always counts': {
    decide: (known, reply) => (reply.kind === 'none' ? { kind: 'keep' } : onlyIfEmpty(known, reply)),
  },
  'only an empty store is brought forward': { decide: onlyIfEmpty },
  'the larger version counts': {
    decide: (known, reply) =>
      reply.kind === 'all' && known !== undefined && reply.state.head.version < known.head.version
        ? { kind: 'restore', seen: reply.state.head }
        : onlyIfEmpty(known, reply),
  },
  'the store does not compare the head': { decide: reconcile, compares: false },
};

describe('one history', () => {
  it.each(Object.entries(HISTORIES))('holds if %s', (_, actions) => new World({ decide: reconcile }).run(actions));

  it(
    'holds in random histories: nothing that a process knew is lost, and nothing that the store has is taken away',
    () =>
      fc.assert(
        fc.asyncProperty(history, (actions) => new World({ decide: reconcile }).run(actions)),
        { numRuns: randomRuns(80) },
      ),
    60_000,
  );

  it.each([
    ['the store always counts', 'the store loses everything'],
    ['only an empty store is brought forward', 'the store loses its last change'],
    ['the larger version counts', 'the store loses its last changes, and another process writes'],
    ['the store does not compare the head', 'a late call brings the store forward, after another process has written'],
  ])('would break if %s, and %s', async (variant, name) => {
    const run = new World(VARIANTS[variant] as Protocol).run(HISTORIES[name] as readonly Action[]);
    await expect(run).rejects.toThrow(/expected/);
  });
});
