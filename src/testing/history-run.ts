import type { Block, BlockTarget, FreshStart } from '../core/block.ts';
import { Decision, FITS, type WindowStatus } from '../core/decision.ts';
import type { LeaseGrant, LimitStore } from '../core/ports.ts';
import { NEVER } from '../core/window.ts';
import type { WindowSet } from '../core/window-set.ts';
import type { Command, History } from './arbitraries.ts';
import { assertEqual } from './assert-equal.ts';
import type { FakeClock } from './fake-clock.ts';
import { Instances } from './instances.ts';
import { createModel, type Model, type ModelDecision } from './model.ts';

/** Histories have no longer windows. */
export const FRESH: FreshStart = { longestMs: 401 * 86_400_000 };

/** Runs one history on the store and on the model, and compares their decisions. */
export class HistoryRun {
  readonly #store: LimitStore;
  readonly #clock: FakeClock;
  readonly #model: Model;
  readonly #history: History;
  readonly #windowSetOf = new Map<string, WindowSet>();
  readonly #decisions: { readonly actual: Decision; readonly expected: ModelDecision }[] = [];
  readonly #instances = new Instances();

  constructor(store: LimitStore, clock: FakeClock, history: History) {
    this.#store = store;
    this.#clock = clock;
    this.#model = createModel(clock);
    this.#history = history;
  }

  async run(): Promise<void> {
    for (const [step, command] of this.#history.commands.entries()) {
      try {
        await this.#step(command);
      } catch (error) {
        throw new Error(`step ${step}, ${JSON.stringify(command)}`, { cause: error });
      }
    }
  }

  async #step(command: Command): Promise<void> {
    switch (command.type) {
      case 'consume':
        return this.#consume(command.account, command.route, command.cost);
      case 'peek':
        return this.#peek(command.account, command.route);
      case 'charge':
        return this.#charge(command.account, command.route, command.cost);
      case 'settle':
        return this.#settle(command.pick, command.cost);
      case 'undo':
        return this.#undo(command.pick);
      case 'lease':
        return this.#lease(command.account, command.route, command.cost, command.requests);
      case 'adjust':
        this.#windowSetOf.set(command.route, at(this.#history.windowSets, command.pick));
        return;
      case 'reset':
        await this.#store.reset(command);
        return this.#model.reset(command);
      case 'block':
        return this.#block(command, { forMs: command.forMs, reason: command.reason }, command.isFresh);
      case 'unblock':
        await this.#store.unblock?.(targetOf(command));
        return this.#model.unblock(targetOf(command));
      case 'advance':
        return this.#advanceTo(this.#clock.now() + command.ms);
      case 'edge':
        return this.#moveToEdge(command.account, command.route, command.pick, command.offset);
      case 'step-back': {
        const now = this.#clock.now();
        return this.#clock.set(Math.max(now - command.ms, this.#instances.earliest(now)));
      }
    }
  }

  async #consume(account: string, route: string, cost: number): Promise<void> {
    const actual = await this.#store.consume(account, route, this.#windowSet(route), cost);
    const expected = this.#model.consume(account, route, this.#windowSet(route), cost);
    this.#compare(actual, expected);
    if (this.#store.blocked !== undefined)
      assertEqual(await this.#store.blocked({ account, route }), this.#model.blocked({ account, route }));
  }

  #compare(actual: Decision, expected: ModelDecision): void {
    const { accepted, shown, trace, impossible, blocked } = actual;
    assertEqual({ accepted, shown, trace, impossible, blocked }, withoutCharges(expected));
    this.#decisions.push({ actual, expected });
    this.#instances.add(expected.charges);
  }

  async #peek(account: string, route: string): Promise<void> {
    const actual: readonly WindowStatus[] = await this.#store.peek(account, route, this.#windowSet(route));
    assertEqual(actual, this.#model.peek(account, route, this.#windowSet(route)));
  }

  async #charge(account: string, route: string, cost: number): Promise<void> {
    if (this.#store.charge === undefined) return;
    const windows = await this.#store.charge(account, route, this.#windowSet(route), cost);
    assertEqual(windows, this.#model.charge(account, route, this.#windowSet(route), cost));
    this.#instances.add(
      windows.flatMap(({ startedAt, durationMs }) => (startedAt === undefined ? [] : [{ startedAt, durationMs }])),
    );
  }

  async #lease(account: string, route: string, cost: number, requests: number): Promise<void> {
    if (this.#store.lease === undefined) return;
    const actual = await this.#store.lease(account, route, this.#windowSet(route), cost, requests);
    const expected = this.#model.lease(account, route, this.#windowSet(route), cost, requests);
    this.#compare(actual.decision, expected.decision);
    assertEqual(actual.granted, expected.granted);
    if (actual.granted <= 1) return;
    this.#decisions.push({ actual: furtherOf(actual), expected: expected.further });
  }

  async #block(command: BlockTarget, block: Block, isFresh = false): Promise<void> {
    if (this.#store.block === undefined) return;
    const target = targetOf(command);
    const rest = isFresh ? [FRESH] : [];
    await this.#store.block(target, block, ...rest);
    this.#model.block(target, block, ...rest);
    const startedAt = this.#clock.now();
    this.#instances.addBlock({ startedAt, durationMs: block.forMs });
    if (!isFresh) return;
    // A store may take every instance of this millisecond for deleted, and those before it for active at an earlier time.
    this.#instances.addBlock({ startedAt, durationMs: 1 });
    await this.#advanceTo(startedAt + 1);
  }

  async #settle(which: number, cost: number): Promise<void> {
    if (this.#decisions.length === 0) return;
    const { actual, expected } = at(this.#decisions, which);
    assertEqual(await this.#store.settle(actual, cost), this.#model.settle(expected, cost));
  }

  async #undo(which: number): Promise<void> {
    if (this.#decisions.length === 0 || this.#store.undo === undefined) return;
    const { actual, expected } = at(this.#decisions, which);
    assertEqual(await this.#store.undo(actual), this.#model.undo(expected));
  }

  async #moveToEdge(account: string, route: string, which: number, offset: number): Promise<void> {
    const windows = this.#model.peek(account, route, this.#windowSet(route));
    if (windows.length === 0) return;
    const { durationMs, startedAt = this.#clock.now() } = at(windows, which);
    await this.#advanceTo(startedAt + durationMs + offset);
  }

  async #advanceTo(ms: number): Promise<void> {
    const now = this.#clock.now();
    if (this.#instances.comesBack(now, ms)) {
      await this.#store.reset({});
      this.#model.reset({});
      this.#instances.clear();
    }
    this.#clock.set(Math.max(now, ms));
  }

  #windowSet(route: string): WindowSet {
    return this.#windowSetOf.get(route) ?? at(this.#history.windowSets, 0);
  }
}

function withoutCharges({ accepted, shown, trace, impossible, blocked }: ModelDecision): object {
  return { accepted, shown, trace, impossible, blocked };
}

/** All granted requests after the first, as if they were one: what a process settles that did not use them. */
export function furtherOf({ decision, granted }: LeaseGrant): Decision {
  const { account, route, windowSet, cost, decidedAt, trace } = decision;
  const further = (granted - 1) * cost;
  const counters = trace.flatMap(({ startedAt = NEVER }) => [startedAt, further]);
  return new Decision(account, route, windowSet, further, decidedAt, FITS, counters);
}

function targetOf({ account, route }: BlockTarget): BlockTarget {
  return route === undefined ? { account } : { account, route };
}

function at<T>(values: readonly T[], index: number): T {
  return values[index % values.length] as T;
}
