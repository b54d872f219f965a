import { FairQueue } from 'headgate/internal';

/** How long the process may work on bodies per turn of the event loop, in milliseconds. */
const TURN_MS = 5;

/**
 * Shares the turns of the event loop among the bodies that the process reads, so that other requests are answered in
 * between, however many applications send bodies. Work past a turn's part waits, and applications take turns.
 */
export class WorkTurns {
  readonly #waiting = new FairQueue<() => void>();
  #usedMs = 0;
  #isScheduled = false;

  /** Whether there is room in this turn, and nothing waits for it. */
  get isFree(): boolean {
    return this.#usedMs < TURN_MS && this.#waiting.size === 0;
  }

  /** Counts work that was done in this turn. */
  use(ms: number): void {
    this.#usedMs += ms;
    this.#schedule();
  }

  /** Calls `work` in a later turn. Resolves and rejects with the outcome of `work`. */
  runLater<Result>(application: string, work: () => Result): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push(application, () => {
        try {
          resolve(work());
        } catch (error) {
          reject(error);
        }
      });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#beginTurn());
  }

  #beginTurn(): void {
    this.#isScheduled = false;
    this.#usedMs = 0;
    while (this.#usedMs < TURN_MS) {
      const next = this.#waiting.next(() => true);
      if (next === undefined) return;
      next();
    }
    this.#schedule();
  }
}
