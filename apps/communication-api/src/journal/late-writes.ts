import { setTimeout as pause } from 'node:timers/promises';
import { isUnavailable } from '../domain/database-unavailable.ts';

/** How often to try to write an outcome while the database is away. */
const WRITE_EVERY_MS = 500;
/** How long to try: a database that fails over is back long before. */
const WRITE_FOR_MS = 600_000;
/** The most outcomes of this process that wait to be written. Each may keep the copy of its email in memory. */
const MAX_UNWRITTEN = 200;

/**
 * Outcomes that could not be written, because the database was away. Only this process knows them, so it writes each
 * outcome as soon as the database is back, and the client's retry finds it. If this process ends first, another process
 * looks for the email.
 */
export class LateWrites {
  readonly #running = new Set<Promise<void>>();

  /** How many are not written. */
  get size(): number {
    return this.#running.size;
  }

  /** Waits until all are written or given up. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** @param failure why the outcome was not written. Nothing is done if the database was not away */
  add(write: () => Promise<unknown>, failure: unknown): void {
    if (!isUnavailable(failure) || this.#running.size >= MAX_UNWRITTEN) return;
    const writing = keepWriting(write).finally(() => this.#running.delete(writing));
    this.#running.add(writing);
  }
}

async function keepWriting(write: () => Promise<unknown>): Promise<void> {
  const deadline = performance.now() + WRITE_FOR_MS;
  while (performance.now() < deadline) {
    await pause(WRITE_EVERY_MS);
    const error = await write().then(
      () => undefined,
      (error: unknown) => error,
    );
    if (!isUnavailable(error)) return;
  }
}
