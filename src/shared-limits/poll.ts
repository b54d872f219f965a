import { builtinModule } from '../base/builtin-module.ts';

/** Calls a function again and again, the next time `everyMs` after the last call ended. */
export class Poll {
  readonly #call: () => Promise<void>;
  readonly #everyMs: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #running: Promise<void> | undefined;
  /** Whether another call must follow the one that is running. */
  #isWanted = false;
  #waiting: (() => void)[] = [];
  #isClosed = false;

  /** @param call must not reject. The first call begins at once */
  constructor(call: () => Promise<void>, everyMs: number) {
    this.#call = bound(call);
    this.#everyMs = everyMs;
    this.now();
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Calls it at once; after the call that is running, if there is one. */
  now(): void {
    if (this.#isClosed) return;
    if (this.#running !== undefined) {
      this.#isWanted = true;
      return;
    }
    clearTimeout(this.#timer);
    this.#running = this.#call().then(() => this.#onEnd());
  }

  /** Waits until a condition holds after a call, at most `ms`. */
  async waitUntil(isMet: () => boolean, ms: number): Promise<void> {
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        isOver = true;
        resolve();
      }, ms);
    });
    while (!isMet() && !isOver && !this.#isClosed)
      await Promise.race([timeout, new Promise<void>((resolve) => this.#waiting.push(resolve))]);
    clearTimeout(timer);
  }

  /** @returns false if it was closed before */
  close(): boolean {
    if (this.#isClosed) return false;
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#wake();
    return true;
  }

  /** Resolves once no call is running. */
  async idle(): Promise<void> {
    await this.#running;
  }

  #onEnd(): void {
    this.#running = undefined;
    this.#wake();
    if (this.#isClosed) return;
    if (this.#isWanted) {
      this.#isWanted = false;
      this.now();
    } else {
      this.#timer = setTimeout(() => this.now(), this.#everyMs);
      // Reading must not keep a process alive.
      (this.#timer as { unref?(): void }).unref?.();
    }
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

/**
 * Runs a function in the asynchronous context of now: a call on behalf of a request would otherwise give the timers
 * after it, their spans and their lines in the log belong to the trace of that request.
 */
function bound<Fn extends () => unknown>(fn: Fn): Fn {
  const resource = builtinModule<typeof import('node:async_hooks')>('node:async_hooks')?.AsyncResource;
  return resource === undefined ? fn : (resource.bind(fn) as Fn);
}
