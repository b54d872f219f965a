/** Runs calls one after the other. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  /** Resolves or rejects as `call` does, which runs once all calls before it ended. */
  run<T>(call: () => T | Promise<T>): Promise<T> {
    const result = this.#last.then(call);
    this.#last = result.catch(() => undefined);
    return result;
  }
}
