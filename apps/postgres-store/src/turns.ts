import { StoreUnavailableError } from 'headgate/stores';

/** A server that is frozen must not let calls pile up here. */
const MAX_WAITING = 1_000;

/**
 * The calls of one account follow each other. On the server they would wait for each other anyway, and each of them
 * would occupy a connection of the pool, so that one busy account could take them all.
 */
export class Turns {
  readonly #deadlineMs: number;
  /** The last call of each account. */
  readonly #last = new Map<string, Promise<void>>();
  /** Calls of all accounts. */
  #waiting = 0;

  constructor(deadlineMs: number) {
    this.#deadlineMs = deadlineMs;
  }

  /**
   * @param call is passed the time that is left for it
   * @throws StoreUnavailableError if the turn does not come in time, or if too many calls wait
   */
  async take<Result>(account: string, call: (deadlineMs: number) => Promise<Result>): Promise<Result> {
    const end = performance.now() + this.#deadlineMs;
    const before = this.#last.get(account);
    if (before !== undefined && this.#waiting >= MAX_WAITING)
      throw new StoreUnavailableError(new Error(`${MAX_WAITING} calls wait for earlier ones`), { sent: false });
    let isOver = (): void => {};
    const turn = new Promise<void>((resolve) => {
      isOver = resolve;
    });
    this.#last.set(account, turn);
    try {
      if (before !== undefined) await this.#waitFor(before);
      const left = Math.ceil(end - performance.now());
      if (left <= 0) {
        const cause = new Error(`${this.#deadlineMs} ms were not enough for the earlier calls of this account`);
        throw new StoreUnavailableError(cause, { sent: false });
      }
      return await call(left);
    } finally {
      isOver();
      if (this.#last.get(account) === turn) this.#last.delete(account);
    }
  }

  async #waitFor(before: Promise<void>): Promise<void> {
    this.#waiting++;
    await before;
    this.#waiting--;
  }
}
