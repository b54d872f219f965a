import type { Clock } from '../../core/clock.ts';
import type { ClaimId } from '../../core/ports.ts';
import { packText, unpackText } from './claim-reply.ts';
import type { Commands } from './client.ts';
import { unresolvedKey } from './keys.ts';
import unresolvedSource from './lua/unresolved.lua';
import { createScript, scriptTime } from './script.ts';

const script = /* @__PURE__ */ createScript(unresolvedSource);

/** Most operations end sooner, and are never noted. A process that dies leaves at most this much unnoted. */
const NOTED_AFTER_MS = 10;
/** Keys per call: the server does nothing else meanwhile. */
const KEYS_PER_CALL = 100;
/** How many of the oldest claims are looked at if there are too many. Some can still run. */
const LOOKED_AT = 8;

/** Options of {@link UnresolvedClaims}. */
export interface UnresolvedClaimsOptions {
  readonly commands: Commands;
  readonly prefix: string;
  readonly clock: Clock | undefined;
  readonly maxClaimsPerScope: number;
  /** Runs one call within the deadline. */
  readonly run: (call: () => Promise<unknown>) => Promise<unknown>;
  /** Asks the store to forget a claim. `stays`: it is too early. */
  readonly forget: (id: ClaimId) => Promise<'forgotten' | 'stays' | 'absent'>;
}

/** A key, and whether it is noted or removed. */
type Change = readonly [key: string, added: boolean];

/**
 * Counts the claims of each scope that are dispatched and have no outcome. Their records never expire, so without this
 * nothing would bound them. The count is kept in Redis, because the process that made such a claim is usually dead. No
 * command of a claim waits for it, and a note that is lost is made up for by the next retry of the key.
 */
export class UnresolvedClaims {
  readonly #options: UnresolvedClaimsOptions;
  /** Per scope the keys to note (true) and to remove (false). */
  #changes = new Map<string, Map<string, boolean>>();
  readonly #listeners = new Set<(id: ClaimId) => void>();
  #sending: Promise<void> = Promise.resolve();
  forgotten = 0;

  constructor(options: UnresolvedClaimsOptions) {
    this.#options = options;
  }

  onForgotten(listener: (id: ClaimId) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** The claim is dispatched, and has no outcome. */
  add(id: ClaimId): void {
    this.#changesOf(id.scope).set(id.key, true);
  }

  /** The claim has an outcome, or was released. */
  remove({ scope, key }: ClaimId): void {
    const changes = this.#changesOf(scope);
    // Noted and resolved before the next call: nothing is to be sent.
    if (changes.get(key) === true) changes.delete(key);
    else changes.set(key, false);
  }

  #changesOf(scope: string): Map<string, boolean> {
    if (this.#changes.size === 0) setTimeout(() => this.#send(), NOTED_AFTER_MS).unref?.();
    let changes = this.#changes.get(scope);
    if (changes === undefined) {
      changes = new Map();
      this.#changes.set(scope, changes);
    }
    return changes;
  }

  #send(): void {
    const all = [...this.#changes];
    this.#changes = new Map();
    // One after the other, so that no removal overtakes its note.
    this.#sending = this.#sending.then(async () => {
      await Promise.all(all.map(([scope, changes]) => this.#noteAll(scope, [...changes])));
    });
  }

  async #noteAll(scope: string, changes: readonly Change[]): Promise<void> {
    for (let i = 0; i < changes.length; i += KEYS_PER_CALL)
      await this.#note(scope, changes.slice(i, i + KEYS_PER_CALL));
  }

  async #note(scope: string, changes: readonly Change[]): Promise<void> {
    const { commands, prefix, clock, maxClaimsPerScope, run } = this.#options;
    const sorted = [true, false].map((kind) =>
      changes.flatMap(([key, added]) => (added === kind ? packText(key) : [])),
    );
    const [added = [], removed = []] = sorted;
    const args = [scriptTime(clock), String(maxClaimsPerScope), String(LOOKED_AT), String(added.length)];
    try {
      const reply = await run(() =>
        script.run(commands, [unresolvedKey(prefix, scope)], [...args, ...added, ...removed]),
      );
      if (!Array.isArray(reply)) return;
      const [tooMany, ...oldest] = reply;
      for (let left = Number(tooMany), i = 0; left > 0 && i < oldest.length; i++)
        if (await this.#forget({ scope, key: unpackText(oldest[i]) })) left--;
    } catch {
      // Nothing is forgotten then, and the next note of the scope tries again.
    }
  }

  /** Returns false if it is too early. */
  async #forget(id: ClaimId): Promise<boolean> {
    const state = await this.#options.forget(id);
    if (state === 'stays') return false;
    this.remove(id);
    if (state === 'forgotten') {
      this.forgotten++;
      for (const listener of this.#listeners) listener(id);
    }
    return true;
  }
}
