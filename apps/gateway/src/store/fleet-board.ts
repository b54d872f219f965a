import { StoreTimeoutError, StoreUnavailableError } from 'headgate';

/** A stored candidate of shadow limits; an empty id means that there is no candidate. */
export interface StoredCandidate {
  readonly id: string;
  readonly text: string;
}

/** The storage that the processes of a {@link FleetBoard} share. */
export interface BoardStorage {
  writeDetails(name: string, details: string, keptMs: number): Promise<unknown>;
  /** The details of each process, or null. */
  detailsOf(names: readonly string[]): Promise<(string | null)[]>;
  /** The id of the candidate; '' without a candidate. */
  candidateId(): Promise<string>;
  /** The candidate; with an empty id without a candidate. */
  candidate(): Promise<StoredCandidate>;
  /** @param candidate with an empty id: there is no candidate from now on */
  writeCandidate(candidate: StoredCandidate): Promise<unknown>;
}

/** Times of a {@link FleetBoard}, in milliseconds. */
export interface FleetBoardOptions {
  readonly deadlineMs: number;
  /** How often other processes are asked for their candidate. */
  readonly refreshMs: number;
}

/** A process writes its details once per this many readings. */
const SAID_EVERY = 4;
/** How long details are kept at least. A process that ends is not listed for longer. */
const KEPT_MS = 10_000;
/** Processes whose details come in one reply: less than half a megabyte, so that the server is not kept busy. */
const AT_ONCE = 50;

/**
 * Data that the gateways with the same store exchange beside the adjustments of limits: their details, and the
 * candidate that all of them run. Failed readings are not reported, because the readings of the adjustments use the
 * same server, and their failures are.
 */
export class FleetBoard {
  readonly #storage: BoardStorage;
  readonly #options: FleetBoardOptions;
  /** Id of the candidate that this process knows. */
  #candidate = '';
  #onCandidate: ((candidate: StoredCandidate) => void) | undefined;
  #say: (() => Promise<unknown>) | undefined;
  /** Readings since the process wrote its details. */
  #readings = SAID_EVERY;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(storage: BoardStorage, options: FleetBoardOptions) {
    this.#storage = storage;
    this.#options = options;
  }

  /** From now on the process writes its details again and again. */
  start(name: string, details: () => string): void {
    const keptMs = Math.max(KEPT_MS, 2 * SAID_EVERY * this.#options.refreshMs);
    this.#say = () => this.#storage.writeDetails(name, details(), keptMs);
    void this.#round();
  }

  /** Calls the listener with the candidate, each time that a reading finds a new candidate. Only one listener. */
  watchCandidate(listener: (candidate: StoredCandidate) => void): void {
    this.#onCandidate = listener;
  }

  /** @throws StoreTimeoutError: the candidate may be stored; StoreUnavailableError */
  async writeCandidate(candidate: StoredCandidate): Promise<void> {
    await this.#call(() => this.#storage.writeCandidate(candidate));
    this.#candidate = candidate.id;
  }

  /**
   * Returns the details of these processes. They are untrusted: any program with the same store can write them.
   * @throws StoreTimeoutError, StoreUnavailableError
   */
  async detailsOf(names: readonly string[]): Promise<(string | null)[]> {
    const details: (string | null)[] = [];
    for (let i = 0; i < names.length; i += AT_ONCE) {
      const some = names.slice(i, i + AT_ONCE);
      details.push(...(await this.#call(() => this.#storage.detailsOf(some))));
    }
    return details;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  async #round(): Promise<void> {
    const isSaid = this.#readings >= SAID_EVERY;
    try {
      await this.#readCandidate();
      if (isSaid) await this.#call(() => this.#say?.());
      this.#readings = isSaid ? 1 : this.#readings + 1;
    } catch {
      // The next round tries again.
    }
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.#round(), this.#options.refreshMs).unref();
  }

  /** The text of a candidate can be large, so it is read only if its id changed. */
  async #readCandidate(): Promise<void> {
    const before = this.#candidate;
    const id = await this.#call(() => this.#storage.candidateId());
    // An operator may start a candidate here meanwhile.
    if (id === before || this.#candidate !== before) return;
    const found = id === '' ? { id, text: '' } : await this.#call(() => this.#storage.candidate());
    if (this.#candidate !== before || this.#isClosed) return;
    this.#candidate = found.id;
    this.#onCandidate?.(found);
  }

  async #call<T>(send: () => Promise<T> | undefined): Promise<Awaited<T>> {
    const { deadlineMs } = this.#options;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new StoreTimeoutError(deadlineMs)), deadlineMs);
    });
    try {
      return (await Promise.race([send(), timeout])) as Awaited<T>;
    } catch (error) {
      throw error instanceof StoreTimeoutError ? error : new StoreUnavailableError(error);
    } finally {
      clearTimeout(timer);
    }
  }
}
