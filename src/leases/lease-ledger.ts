import { builtinModule } from '../base/builtin-module.ts';
import { Emitter } from '../base/emitter.ts';
import type { Logger } from '../base/logger.ts';
import { LEASE_CHANNEL, type LeaseEvent } from '../core/lease-channel.ts';
import type { Pair } from './pair.ts';
import type { Pairs } from './pairs.ts';
import type { LeaseStats } from './ports.ts';

interface Channel {
  readonly hasSubscribers: boolean;
  publish(message: unknown): void;
}

type Names = Pick<LeaseEvent, 'account' | 'route'>;

/** Counts what becomes of the units of leases, and emits events about it. */
export class LeaseLedger extends Emitter<LeaseEvent> {
  readonly #channel = builtinModule<{ channel(name: string): Channel }>('node:diagnostics_channel')?.channel(
    LEASE_CHANNEL,
  );
  readonly #pairs: Pairs[] = [];
  readonly #units = { leased: 0, used: 0, given_back: 0, lost: 0 };
  /** Decisions that needed no call. */
  decisions = 0;

  constructor(listener: ((event: LeaseEvent) => void) | undefined, log: Logger) {
    super(listener, log);
  }

  /** Units of these pairs are held from now on. */
  addPairs(pairs: Pairs): void {
    this.#pairs.push(pairs);
  }

  leased(names: Names, units: number): void {
    this.#add('leased', names, units);
  }

  /** @param isGiven whether they went back */
  ended(names: Names, units: number, isGiven: boolean, error?: unknown): void {
    this.#add(isGiven ? 'given_back' : 'lost', names, units, error);
  }

  /** Call it with a pair when its lease ends or changes: what requests took is not counted one by one. */
  took(pair: Pair): void {
    const { taken } = pair;
    pair.taken = 0;
    this.#add('used', pair, taken);
  }

  stats(): LeaseStats {
    const { leased, used, given_back: givenBack, lost } = this.#units;
    const all = this.#pairs.flatMap((pairs) => [...pairs.matching(undefined, undefined)]);
    const taken = all.reduce((sum, pair) => sum + pair.taken, 0);
    return {
      leased,
      used: used + taken,
      givenBack,
      lost,
      // Also what is on its way back.
      held: leased - used - taken - givenBack - lost,
      decisions: this.decisions,
      pairs: all.length,
    };
  }

  #add(type: LeaseEvent['type'], { account, route }: Names, units: number, error?: unknown): void {
    if (units <= 0) return;
    this.#units[type] += units;
    const isPublished = this.#channel?.hasSubscribers === true;
    if (!isPublished && !this.hasListener) return;
    const event = { type, account, route, units, error };
    if (isPublished) this.#channel?.publish(event);
    this.emit(event);
  }
}
