/** One command on one claim, on its way. */
export interface Job {
  readonly key: string;
  /** As `claim.lua` has them, without the time. */
  readonly args: readonly string[];
  /** Of the answer: the time, then what it says. Throws where it makes no sense. */
  settle(answer: unknown): void;
  reject(error: unknown): void;
}

/** Options of {@link ClaimTurn}. */
export interface ClaimTurnOptions {
  /** A cluster runs a script on keys of one slot only: then each goes alone. */
  readonly alone: boolean;
  /** Gets what travels as one call. */
  readonly send: (jobs: readonly Job[]) => void;
}

/** Most commands of one call: the server does nothing else until it is done, some 10 µs for each. */
const MAX_JOBS = 32;
/** Characters past which no more join a call, so that nobody waits long for another's value. */
const MAX_SIZE = 65_536;

/** Collects the commands of one turn of the event loop, which travel together, in the order in which they came. */
export class ClaimTurn {
  readonly #options: ClaimTurnOptions;
  #jobs: Job[] = [];

  constructor(options: ClaimTurnOptions) {
    this.#options = options;
  }

  add(job: Job): void {
    if (this.#options.alone) {
      this.#options.send([job]);
      return;
    }
    if (this.#jobs.length === 0) setImmediate(() => this.#end());
    this.#jobs.push(job);
  }

  #end(): void {
    const jobs = this.#jobs;
    this.#jobs = [];
    let group: Job[] = [];
    let size = 0;
    for (const job of jobs) {
      let own = job.key.length;
      for (const arg of job.args) own += arg.length;
      if (group.length === MAX_JOBS || (group.length > 0 && size + own > MAX_SIZE)) {
        this.#options.send(group);
        group = [];
        size = 0;
      }
      group.push(job);
      size += own;
    }
    if (group.length > 0) this.#options.send(group);
  }
}
