import fc from 'fast-check';
import type { BeginCommand } from '../../src/core/claim.ts';
import type { ClaimStore } from '../../src/core/ports.ts';
import type { OnOrphan, Timers } from '../../src/idempotency/index.ts';
import { createIdempotency, type Idempotency, notExecuted, type RunResult } from '../../src/index.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createFakeTimers, type FakeTimers } from './fake-timers.ts';

/**
 * How long a command and its reply travel, and whether one of them is lost. A sender gives up if the reply is not in
 * time.
 */
export interface Trip {
  readonly lost: 'no' | 'there' | 'back';
  readonly thereMs: number;
  readonly backMs: number;
}

/** A process with one request: what it does, and what happens to it. */
export interface Story {
  readonly startMs: number;
  readonly request: 'f' | 'g';
  readonly dispatch: 'explicit' | 'automatic';
  /** The times before the dispatch, between dispatch and effect, and after the effect. */
  readonly prepareMs: number;
  readonly effectMs: number;
  readonly finishMs: number;
  readonly outcome: 'value' | 'failure' | 'not_executed' | 'rejected_before';
  /** One per command, in order. Commands after the last one arrive without a problem. */
  readonly trips: readonly Trip[];
  readonly diesAt: number | undefined;
  /** The process stalls: when, in ms after its start, and for how many ms. */
  readonly stall: readonly [number, number];
}

export const LEASE_MS = 3_000;
const DEADLINE_MS = 250;
const GOOD: Trip = { lost: 'no', thereMs: 1, backMs: 1 };

/** A command with delays, or one that is lost. */
const badTrip: fc.Arbitrary<Trip> = fc.record({
  lost: fc.constantFrom('no', 'no', 'there', 'back'),
  thereMs: fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 12_000 })),
  backMs: fc.integer({ min: 0, max: 300 }),
});
const trip: fc.Arbitrary<Trip> = fc.oneof(
  { weight: 2, arbitrary: fc.constant(GOOD) },
  { weight: 1, arbitrary: badTrip },
);

const ms = (max: number): fc.Arbitrary<number> =>
  fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max }));

const story: fc.Arbitrary<Story> = fc.record({
  startMs: ms(10_000),
  request: fc.constantFrom('f', 'f', 'f', 'f', 'g'),
  dispatch: fc.constantFrom('explicit', 'automatic'),
  prepareMs: ms(6_000),
  effectMs: ms(6_000),
  finishMs: ms(6_000),
  outcome: fc.constantFrom('value', 'value', 'value', 'failure', 'not_executed', 'rejected_before'),
  trips: fc.array(trip, { maxLength: 10 }),
  diesAt: fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: ms(15_000) }),
  stall: fc.tuple(ms(6_000), fc.oneof(fc.constant(0), fc.integer({ min: LEASE_MS, max: 4 * LEASE_MS }))),
});

/** Up to four owners of one key. */
export const stories: fc.Arbitrary<Story[]> = fc.array(story, { minLength: 1, maxLength: 4 });

/** The state of a provider. With `reconcile` it fences: it refuses a generation that is older than one it has seen. */
export interface Provider {
  readonly effects: string[];
  fence: number;
}

/** Timers that can stall, or stop, for one process only. */
class ProcessTime implements Timers {
  dead = false;
  readonly #world: FakeTimers;
  readonly #stalledUntil: (now: number) => number;
  waiting = 0;

  constructor(world: FakeTimers, { startMs, stall: [from, forMs] }: Story) {
    const start = world.now() + startMs + from;
    this.#world = world;
    this.#stalledUntil = (now) => (now >= start && now < start + forMs ? start + forMs : now);
  }

  now(): number {
    return this.#world.now();
  }

  after(delayMs: number, call: () => void): () => void {
    this.waiting++;
    let cancel = (): void => {};
    let open = true;
    const end = (): boolean => {
      const was = open;
      open = false;
      if (was) this.waiting--;
      return was;
    };
    const fire = (): void => {
      if (this.dead) return void end();
      const until = this.#stalledUntil(this.now());
      if (until > this.now()) cancel = this.#world.after(until - this.now(), fire, true);
      else if (end()) call();
    };
    cancel = this.#world.after(delayMs, fire, true);
    return () => {
      cancel();
      end();
    };
  }
}

export class Owner {
  readonly name: string;
  readonly story: Story;
  readonly time: ProcessTime;
  readonly idempotency: Idempotency;
  readonly #provider: Provider;
  readonly #policy: OnOrphan;
  result: RunResult<string> | undefined;
  thrown: unknown;

  constructor(name: string, story: Story, world: FakeTimers, store: ClaimStore, provider: Provider, policy: OnOrphan) {
    this.name = name;
    this.story = story;
    this.#provider = provider;
    this.#policy = policy;
    this.time = new ProcessTime(world, story);
    const { diesAt, startMs } = story;
    if (diesAt !== undefined) world.after(diesAt, () => (this.time.dead = true), true);
    this.idempotency = createIdempotency({
      store: withUnreliableConnection(store, story.trips, world, this.time),
      timers: this.time,
      leaseMs: LEASE_MS,
      waitMs: 5_000,
      onOrphan: policy,
      reconcile: ({ generation }) => {
        provider.fence = Math.max(provider.fence, generation);
        const [effect] = provider.effects;
        return effect === undefined ? { done: false } : { done: true, result: effect };
      },
    });
    this.time.after(startMs, () => void this.#run());
  }

  /** The name of the execution whose outcome this owner got, if any. */
  get outcome(): string | undefined {
    const { result } = this;
    if (result?.kind === 'executed' || result?.kind === 'replayed') return result.value;
    return result?.kind === 'failed' ? (result.error as Error).message : undefined;
  }

  async #run(): Promise<void> {
    const { request, dispatch, prepareMs, effectMs, finishMs, outcome } = this.story;
    const { effects } = this.#provider;
    try {
      this.result = await this.idempotency.run(
        'k',
        request,
        async (context) => {
          if (outcome === 'rejected_before' && dispatch === 'explicit') throw new Error('429');
          await this.#sleep(prepareMs);
          if (dispatch === 'explicit') await context.dispatch();
          await this.#sleep(effectMs);
          if (outcome === 'not_executed' || outcome === 'rejected_before') throw notExecuted(new Error('refused'));
          const { generation = 0 } = context;
          if (this.#policy === 'reconcile') {
            if (generation < this.#provider.fence) throw notExecuted(new Error('fenced'));
            this.#provider.fence = generation;
          }
          effects.push(this.name);
          await this.#sleep(finishMs);
          if (outcome === 'failure') throw new Error(this.name);
          return this.name;
        },
        { dispatch },
      );
    } catch (error) {
      this.thrown = error;
    }
  }

  #sleep(forMs: number): Promise<void> {
    return new Promise((resolve) => void this.time.after(forMs, resolve));
  }
}

/**
 * A store behind a connection that loses and delays commands. As in the Redis store, every begin that also dispatches
 * has a deadline.
 */
function withUnreliableConnection(
  store: ClaimStore,
  trips: readonly Trip[],
  world: FakeTimers,
  time: ProcessTime,
): ClaimStore {
  const left = [...trips];
  const send =
    (name: 'begin' | 'extend' | 'dispatch' | 'complete' | 'abandon') =>
    (id: never, command: object): Promise<unknown> =>
      new Promise((resolve, reject) => {
        const { lost, thereMs, backMs } = left.shift() ?? GOOD;
        const marks = name === 'begin' && (command as BeginCommand).dispatch;
        const sent = marks ? { ...command, deadline: world.now() + DEADLINE_MS } : command;
        const giveUp = time.after(DEADLINE_MS, () => reject(new Error(`${name} timed out`)));
        const answer = (reply: unknown): void => {
          time.after(backMs, () => {
            giveUp();
            resolve(reply);
          });
        };
        if (lost === 'there') return;
        world.after(
          thereMs,
          () => {
            const reply = store[name](id, sent as never);
            if (lost === 'no') answer(reply);
          },
          true,
        );
      });
  return {
    synchronous: false,
    begin: send('begin'),
    extend: send('extend'),
    dispatch: send('dispatch'),
    complete: send('complete'),
    abandon: send('abandon'),
    inspect: (id) => store.inspect(id),
  } as ClaimStore;
}

/** The state after all owners have ended, and after one more retry of the same request. */
export interface End {
  readonly owners: readonly Owner[];
  readonly alive: readonly Owner[];
  readonly retry: Owner;
  readonly effects: readonly string[];
}

const CALM: Story = {
  startMs: 0,
  request: 'f',
  dispatch: 'explicit',
  prepareMs: 1,
  effectMs: 1,
  finishMs: 1,
  outcome: 'value',
  trips: [],
  diesAt: undefined,
  stall: [0, 0],
};

/** Runs the stories of several owners of one key, with one policy. */
export async function play(all: readonly Story[], policy: OnOrphan): Promise<End> {
  const world = createFakeTimers();
  const store = createMemoryClaimStore({ clock: world });
  const provider: Provider = { effects: [], fence: 0 };
  const owner = (name: string, story: Story): Owner => new Owner(name, story, world, store, provider, policy);
  const owners = all.map((story, index) => owner(`owner ${index}`, story));
  await world.advance(120_000);
  const retry = owner('retry', CALM);
  await world.advance(30_000);
  return { owners, alive: owners.filter(({ time }) => !time.dead), retry, effects: provider.effects };
}
