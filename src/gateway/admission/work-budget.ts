import { WorkTurns } from './work-turns.ts';

/** How long a spent budget lasts, in milliseconds. */
const WINDOW_MS = 60_000;
/** The first work of an application in a window does not wait for its turn, in milliseconds. */
const PROMPT_MS = 5;

/**
 * How long the process may work on request bodies that come to nothing: requests that are refused, replayed or broken
 * off. Per application, because nothing else charges it for them. The work is counted while it is done, and given back
 * when the request has a connection to the upstream.
 */
export class WorkBudget {
  readonly #accounts = new Map<string, WorkAccount>();
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
    let account = this.#accounts.get(application);
    if (account === undefined) {
      account = {
        application,
        startedAt: Number.NEGATIVE_INFINITY,
        usedMs: 0,
        refusedMs: 0,
        undecided: new Set(),
        waiting: [],
      };
      this.#accounts.set(application, account);
    }
    return new WorkMeter(account, this.#turns, this.maxMs, this.now);
  }
}

/** What an application has used. */
interface WorkAccount {
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
    private readonly account: WorkAccount,
    private readonly turns: WorkTurns,
    private readonly maxMs: number,
    private readonly now: () => number,
  ) {}

  /** If refused requests have spent the budget: whole seconds until there is a new one. */
  get retryAfter(): number | undefined {
    const { startedAt, refusedMs } = this.account;
    const leftMs = startedAt + WINDOW_MS - this.now();
    return leftMs > 0 && refusedMs >= this.maxMs ? Math.ceil(leftMs / 1_000) : undefined;
  }

  /**
   * Works at once, or in a later turn of the event loop if this one has been used up. An application with little work
   * never waits for those that have much. If requests that are not decided yet have used up the budget, only the first
   * one of them goes on, and the others wait for its end.
   * @throws BudgetSpent if the budget is spent by now; also whatever `work` throws
   */
  run(work: () => void): Promise<void> | undefined {
    const { application, startedAt, usedMs, undecided } = this.account;
    if (!this.#isEnded) undecided.add(this);
    if (this.#mustWait) {
      return new Promise<void>((resolve) => this.account.waiting.push(resolve)).then(() => this.run(work));
    }
    const isPrompt = usedMs < PROMPT_MS || this.now() >= startedAt + WINDOW_MS;
    if (!isPrompt && !this.turns.isFree) return this.turns.runLater(application, () => this.#measure(work));
    this.#measure(work);
    return undefined;
  }

  /** The request is sent, and charged: its work counts no longer. */
  giveBack(): void {
    const { account } = this;
    if (this.#window === account.startedAt) {
      account.usedMs -= this.#usedMs;
      if (this.#isEnded) account.refusedMs -= this.#usedMs;
    }
    this.#usedMs = 0;
    this.end();
  }

  /** The request is over: what was not given back counts as refused. Later calls do nothing. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const { account } = this;
    if (this.#window === account.startedAt) account.refusedMs += this.#usedMs;
    account.undecided.delete(this);
    const { waiting } = account;
    account.waiting = [];
    for (const wake of waiting) wake();
  }

  get #mustWait(): boolean {
    const { startedAt, usedMs, undecided } = this.account;
    const [first] = undecided;
    if (this.#isEnded || first === this || this.now() >= startedAt + WINDOW_MS) return false;
    const othersMs = usedMs - (this.#window === startedAt ? this.#usedMs : 0);
    return othersMs >= this.maxMs;
  }

  #measure(work: () => void): void {
    const { retryAfter } = this;
    if (retryAfter !== undefined) throw new BudgetSpent(retryAfter);
    const beganAt = this.now();
    try {
      work();
    } finally {
      this.#charge(beganAt, this.now() - beganAt);
    }
  }

  #charge(beganAt: number, ms: number): void {
    const { account } = this;
    if (beganAt >= account.startedAt + WINDOW_MS) {
      account.startedAt = beganAt;
      account.usedMs = 0;
      account.refusedMs = 0;
    }
    if (this.#window !== account.startedAt) {
      this.#window = account.startedAt;
      this.#usedMs = 0;
    }
    account.usedMs += ms;
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
