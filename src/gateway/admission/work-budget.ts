import { setImmediate as nextTurn } from 'node:timers/promises';
import type { MaybePromise } from '../../core/ports.ts';

/** How long a spent budget lasts, in milliseconds. */
const WINDOW_MS = 60_000;
/** How long the bodies of one application may be worked on per turn of the event loop, in milliseconds. */
const TURN_MS = 5;

/**
 * How long the process may work on request bodies that come to nothing: requests that are refused, replayed or broken
 * off. Per application, because nothing else charges it for them. The work is counted while it is done, and given back
 * when the request has a connection to the upstream.
 */
export class WorkBudget {
  readonly #usages = new Map<string, WorkUsage>();

  /**
   * @param maxMs longest work per application in a window of a minute, in milliseconds; the window starts with the
   * first work
   * @param now monotonic, in milliseconds
   */
  constructor(
    private readonly maxMs: number,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** For the body of one request. Only applications of the config may be given, so that their number is bounded. */
  meter(application: string): WorkMeter {
    let usage = this.#usages.get(application);
    if (usage === undefined) {
      usage = { startedAt: Number.NEGATIVE_INFINITY, usedMs: 0, turnMs: 0 };
      this.#usages.set(application, usage);
    }
    return new WorkMeter(usage, this.maxMs, this.now);
  }
}

/** What an application has used. */
interface WorkUsage {
  startedAt: number;
  usedMs: number;
  /** The same in this turn of the event loop. */
  turnMs: number;
}

/** Measures the work on one body. */
export class WorkMeter {
  #usedMs = 0;
  /** The window that was charged: nothing is given back to a later one. */
  #window = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly usage: WorkUsage,
    private readonly maxMs: number,
    private readonly now: () => number,
  ) {}

  /** If other requests have spent the budget: whole seconds until there is a new one. */
  get retryAfter(): number | undefined {
    const { startedAt, usedMs } = this.usage;
    const leftMs = startedAt + WINDOW_MS - this.now();
    const othersMs = usedMs - (this.#window === startedAt ? this.#usedMs : 0);
    return leftMs > 0 && othersMs >= this.maxMs ? Math.ceil(leftMs / 1_000) : undefined;
  }

  /**
   * Works at once, or in a later turn of the event loop if the application has used its part of this one. Then other
   * applications go first.
   * @throws BudgetSpent if the budget is spent by now; also whatever `work` throws
   */
  run<Result>(work: () => Result): MaybePromise<Result> {
    return this.usage.turnMs < TURN_MS ? this.#measure(work) : this.#runLater(work);
  }

  /** The request is sent, and charged: its work counts no longer. */
  giveBack(): void {
    if (this.#window === this.usage.startedAt) this.usage.usedMs -= this.#usedMs;
    this.#usedMs = 0;
  }

  async #runLater<Result>(work: () => Result): Promise<Result> {
    do await nextTurn();
    while (this.usage.turnMs >= TURN_MS);
    return this.#measure(work);
  }

  #measure<Result>(work: () => Result): Result {
    const { retryAfter } = this;
    if (retryAfter !== undefined) throw new BudgetSpent(retryAfter);
    const beganAt = this.now();
    try {
      return work();
    } finally {
      this.#charge(beganAt, this.now() - beganAt);
    }
  }

  #charge(beganAt: number, ms: number): void {
    const { usage } = this;
    if (beganAt >= usage.startedAt + WINDOW_MS) {
      usage.startedAt = beganAt;
      usage.usedMs = 0;
    }
    if (this.#window !== usage.startedAt) {
      this.#window = usage.startedAt;
      this.#usedMs = 0;
    }
    usage.usedMs += ms;
    this.#usedMs += ms;
    if (usage.turnMs === 0) {
      setImmediate(() => {
        usage.turnMs = 0;
      });
    }
    usage.turnMs += ms;
  }
}

/** The application's budget is spent. */
export class BudgetSpent extends Error {
  /** @param retryAfter whole seconds until there is a new one */
  constructor(readonly retryAfter: number) {
    super('the work budget of the application is spent');
    this.name = 'BudgetSpent';
  }
}
