import { readFileSync } from 'node:fs';
import type { Block, BlockTarget } from '../../src/core/block.ts';
import type { WindowStatus } from '../../src/core/decision.ts';
import type { LimitInput } from '../../src/core/limit.ts';
import type { ResetTarget } from '../../src/core/ports.ts';
import type { AllMethodsScope, WindowSet } from '../../src/core/window-set.ts';
import type { Command, History } from '../../src/testing/arbitraries.ts';
import { createFakeClock, type FakeClock } from '../../src/testing/fake-clock.ts';
import { Instances } from '../../src/testing/instances.ts';
import { createModel, type ModelDecision } from '../../src/testing/model.ts';
import { windowSetFrom } from './window-set.ts';

/** The part of a decision that the model has too. */
export interface Outcome {
  readonly accepted: boolean;
  readonly shown: WindowStatus | undefined;
  readonly trace: readonly WindowStatus[];
  readonly impossible: boolean;
  readonly blocked?: Block | undefined;
}

/** What is compared with the model. */
export interface Subject<D extends Outcome = Outcome> {
  consume(account: string, route: string, windowSet: WindowSet, cost: number): D;
  peek(account: string, route: string, windowSet: WindowSet): readonly WindowStatus[];
  settle(decision: D, cost: number): boolean;
  reset(target: ResetTarget): void;
  /** Without them, the blocks of a history are skipped. */
  block?(target: BlockTarget, block: Block): void;
  unblock?(target: BlockTarget): void;
}

export interface ReplayOptions<D extends Outcome> {
  readonly create: (clock: FakeClock) => Subject<D>;
  /**
   * Whether the subject still knows an instance that was over when the clock steps back into its time. A bounded store
   * may have removed it. For such a store, the clock never steps back past the end of an instance.
   */
  readonly remembersWhatIsOver: boolean;
  /** Called with each pair of results. Must throw if they differ. */
  readonly compare: (actual: unknown, expected: unknown, step: string) => void;
}

const ACCOUNTS = ['a', 'b'];
const ROUTES = ['r', 's'];

/** Runs the same history on the subject and on the model, and compares all results. Returns the final state. */
export function replay<D extends Outcome>(history: History, options: ReplayOptions<D>): World<D> {
  const world = new World(history, options);
  for (const [step, command] of history.commands.entries())
    world.run(command, `step ${step}: ${JSON.stringify(command)}`);
  world.compareEverything();
  return world;
}

export class World<D extends Outcome> {
  readonly clock = createFakeClock(1_000_000);
  readonly model = createModel(this.clock);
  readonly subject: Subject<D>;
  readonly decisions: { readonly actual: D; readonly expected: ModelDecision }[] = [];
  readonly #windowSets: readonly WindowSet[];
  readonly #options: ReplayOptions<D>;
  readonly #windowSetOf = new Map<string, WindowSet>();
  readonly #instances = new Instances();

  constructor({ windowSets }: History, options: ReplayOptions<D>) {
    this.#windowSets = windowSets;
    this.#options = options;
    this.subject = options.create(this.clock);
  }

  windowSetOf(route: string): WindowSet {
    return this.#windowSetOf.get(route) ?? at(this.#windowSets, 0);
  }

  run(command: Command, step: string): void {
    switch (command.type) {
      case 'consume':
        this.#consume(command.account, command.route, command.cost, step);
        break;
      case 'peek':
        this.#peek(command.account, command.route, this.windowSetOf(command.route), step);
        break;
      case 'settle':
        this.#settle(command.pick, command.cost, step);
        break;
      case 'adjust':
        this.#windowSetOf.set(command.route, at(this.#windowSets, command.pick));
        break;
      case 'reset':
        this.subject.reset(command);
        this.model.reset(command);
        break;
      case 'block':
        if (this.subject.block !== undefined) this.#block(command, command);
        break;
      case 'unblock':
        this.subject.unblock?.(command);
        this.model.unblock(command);
        break;
      case 'advance':
        this.#advanceTo(this.clock.now() + command.ms);
        break;
      case 'edge':
        this.#moveToEdge(command.account, command.route, command.pick, command.offset);
        break;
      case 'step-back':
        this.#stepBackTo(this.clock.now() - command.ms);
    }
  }

  compareEverything(): void {
    for (const account of ACCOUNTS) {
      for (const route of ROUTES) {
        for (const windowSet of this.#windowSets)
          this.#peek(account, route, windowSet, `at the end: ${account}, ${route}`);
      }
    }
  }

  #consume(account: string, route: string, cost: number, step: string): void {
    const windowSet = this.windowSetOf(route);
    const actual = this.subject.consume(account, route, windowSet, cost);
    const { charges, decidedAt, ...expected } = this.model.consume(account, route, windowSet, cost);
    const { accepted, shown, trace, impossible, blocked } = actual;
    this.#options.compare({ accepted, shown, trace, impossible, blocked }, expected, step);
    this.decisions.push({ actual, expected: { ...expected, charges, decidedAt } });
    this.#instances.add(charges);
  }

  #block({ account, route }: BlockTarget, { forMs, reason }: Block): void {
    this.subject.block?.({ account, route }, { forMs, reason });
    this.model.block({ account, route }, { forMs, reason });
    this.#instances.addBlock({ startedAt: this.clock.now(), durationMs: forMs });
  }

  #peek(account: string, route: string, windowSet: WindowSet, step: string): void {
    const actual = this.subject.peek(account, route, windowSet);
    this.#options.compare(actual, this.model.peek(account, route, windowSet), step);
  }

  #settle(pick: number, cost: number, step: string): void {
    if (this.decisions.length === 0) return;
    const { actual, expected } = at(this.decisions, pick);
    this.#options.compare(this.subject.settle(actual, cost), this.model.settle(expected, cost), step);
  }

  #moveToEdge(account: string, route: string, pick: number, offset: number): void {
    const windows = this.model.peek(account, route, this.windowSetOf(route));
    if (windows.length === 0) return;
    const { durationMs, startedAt = this.clock.now() } = at(windows, pick);
    this.#advanceTo(startedAt + durationMs + offset);
  }

  #stepBackTo(ms: number): void {
    const { remembersWhatIsOver } = this.#options;
    this.clock.set(Math.max(ms, 0, remembersWhatIsOver ? 0 : this.#instances.earliest(this.clock.now())));
  }

  #advanceTo(ms: number): void {
    if (!this.#options.remembersWhatIsOver && this.#instances.comesBack(this.clock.now(), ms)) {
      this.subject.reset({});
      this.model.reset({});
      this.#instances.clear();
    }
    this.clock.set(ms);
  }
}

/**
 * The saved histories, in the order in which they were found. Their times are short, and their names say what they
 * test.
 */
export function keptHistories(): { readonly name: string; readonly history: History }[] {
  const file = new URL('../regressions.json', import.meta.url);
  const kept = JSON.parse(readFileSync(file, 'utf8')) as readonly KeptHistory[];
  return kept.map(({ name, plans, commands }) => ({
    name,
    history: {
      windowSets: plans.map(({ route = [], allMethods, scope }) => windowSetFrom(route, allMethods, scope)),
      commands,
    },
  }));
}

interface KeptHistory {
  readonly name: string;
  readonly plans: readonly {
    readonly route?: LimitInput;
    readonly allMethods?: LimitInput;
    readonly scope?: AllMethodsScope;
  }[];
  readonly commands: readonly Command[];
}

function at<T>(list: readonly T[], index: number): T {
  return list[index % list.length] as T;
}
