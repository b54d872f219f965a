import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import type { Database } from '../db/database.ts';
import type { Clock } from '../domain/clock.ts';

/** A time is written at most once in this time for each key. */
const INTERVAL_MS = 60_000;
/** How long uses are collected, so that many keys cost one statement. */
const COLLECT_MS = 250;
const REMEMBERED_KEYS = 10_000;

/** When keys were last used. A request never waits for this. */
export class KeyUses {
  readonly #written = new LRUCache<string, true>({ max: REMEMBERED_KEYS, ttl: INTERVAL_MS });
  readonly #collected = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(
    private readonly db: Database,
    private readonly clock: Clock,
    private readonly log: Pick<Logger, 'warn'> | undefined,
  ) {}

  note(keyId: string): void {
    if (this.#written.has(keyId)) return;
    this.#written.set(keyId, true);
    this.#collected.add(keyId);
    this.#timer ??= setTimeout(() => this.#write(), COLLECT_MS).unref();
  }

  /** Writes the collected uses. */
  async close(): Promise<void> {
    if (this.#timer !== undefined) {
      clearTimeout(this.#timer);
      this.#write();
    }
    await this.#writing;
  }

  #write(): void {
    this.#timer = undefined;
    const ids = [...this.#collected];
    this.#collected.clear();
    this.#writing = this.#writing.then(() => this.#update(ids));
  }

  async #update(ids: readonly string[]): Promise<void> {
    const now = this.clock();
    const due = new Date(now - INTERVAL_MS);
    try {
      await this.db
        .updateTable('api_keys')
        .set({ last_used_at: new Date(now) })
        .where('id', 'in', (query) =>
          query
            .selectFrom('api_keys')
            .select('id')
            .where('id', 'in', ids)
            .where((key) => key.or([key('last_used_at', 'is', null), key('last_used_at', '<=', due)]))
            // Another process that writes the same keys in another order would be a deadlock.
            .forUpdate()
            .skipLocked(),
        )
        .execute();
    } catch (error) {
      this.log?.warn({ err: error }, 'the last use of keys was not written');
    }
  }
}
