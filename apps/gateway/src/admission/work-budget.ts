import type { MaybePromise } from 'headgate/stores';
import { WorkTurns } from './work-turns.ts';

/** How long a spent budget lasts, in milliseconds. */
const WINDOW_MS = 60_000;
/** The first work of an application in a window does not wait for its turn, in milliseconds. */
const PROMPT_MS = 5;

/**
 * How long the process may work on request bodies that come to nothing: requests that are refused, replayed or broken
 * off. Per application, because nothing else charges it for them. The work is counted while it is done, and given back
 * when the request gets a connection to the upstream.
 */
export class WorkBudget {
  readonly #usages = new Map<string, WorkUsage>();
  readonly #turns = new WorkTurns();

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
      usage = {
        application,
        startedAt: Number.NEGATIVE_INFINITY,
        usedMs: 0,
        refusedMs: 0,
        undecided: new Set(),
        waiting: [],
      };
      this.#usages.set(application, usage);
    }
    return new WorkMeter(usage, this.#turns, this.maxMs, this.now);
  }
}

/** An application's usage. */
interface WorkUsage {
  readonly application: string;
  startedAt: number;
  /** By requests that were refused, and by those that are not decided yet. */
  usedMs: number;
  /** By those that were refused. */
  refusedMs: number;
  /** Requests that are worked on and not decided yet, in their order. */
  readonly undecided: Set<WorkMeter>;
  /** Called when one of them is decided. */
  waiting: (() => void)[];
}

/** Measures the work on one body. */
export class WorkMeter {
  #usedMs = 0;
  #isEnded = false;
  /** The window that was charged: nothing is given back to a later one. */
  #window = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly usage: WorkUsage,
    private readonly turns: WorkTurns,
    private readonly maxMs: number,
    private readonly now: () => number,
  ) {}

  /** Whole seconds until the next budget, if refused requests spent this budget. */
  get retryAfter(): number | undefined {
    const { startedAt, refusedMs } = this.usage;
    const leftMs = startedAt + WINDOW_MS - this.now();
    return leftMs > 0 && refusedMs >= this.maxMs ? Math.ceil(leftMs / 1_000) : undefined;
  }

  /**
   * Works at once, or in a later turn of the event loop if this turn is used up. An application with little work never
   * waits for applications with much work. If undecided requests use up the budget, only the first of them goes on, and
   * the others wait for its end.
   * @throws BudgetSpent if the budget is spent by now; also the errors of `work`
   */
  run<Result>(work: () => Result): MaybePromise<Result> {
    const { application, startedAt, usedMs, undecided } = this.usage;
    if (!this.#isEnded) undecided.add(this);
    if (this.#mustWait) {
      return new Promise<void>((resolve) => this.usage.waiting.push(resolve)).then(() => this.run(work));
    }
    const isPrompt = usedMs < PROMPT_MS || this.now() >= startedAt + WINDOW_MS;
    if (!isPrompt && !this.turns.isFree) return this.turns.runLater(application, () => this.#measure(work));
    return this.#measure(work);
  }

  /** The request is sent, and charged: its work counts no longer. */
  giveBack(): void {
    const { usage } = this;
    if (this.#window === usage.startedAt) {
      usage.usedMs -= this.#usedMs;
      if (this.#isEnded) usage.refusedMs -= this.#usedMs;
    }
    this.#usedMs = 0;
    this.end();
  }

  /** Ends the request: work that was not given back counts as refused. Later calls do nothing. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const { usage } = this;
    if (this.#window === usage.startedAt) usage.refusedMs += this.#usedMs;
    usage.undecided.delete(this);
    const { waiting } = usage;
    usage.waiting = [];
    for (const wake of waiting) wake();
  }

  get #mustWait(): boolean {
    const { startedAt, usedMs, undecided } = this.usage;
    const [first] = undecided;
    if (this.#isEnded || first === this || this.now() >= startedAt + WINDOW_MS) return false;
    const othersMs = usedMs - (this.#window === startedAt ? this.#usedMs : 0);
    return othersMs >= this.maxMs;
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
      usage.refusedMs = 0;
    }
    if (this.#window !== usage.startedAt) {
      this.#window = usage.startedAt;
      this.#usedMs = 0;
    }
    usage.usedMs += ms;
    this.#usedMs += ms;
    this.turns.use(ms);
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
