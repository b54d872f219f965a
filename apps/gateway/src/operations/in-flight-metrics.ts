import { decorateStore } from 'headgate/internal';
import type { InFlightEvent } from 'headgate/limits';
import type { LimitStore, Slot, SlotReply } from 'headgate/stores';
import { Counter, Gauge, type Registry } from 'prom-client';
import { getOrCreate } from '../base/get-or-create.ts';
import { isPromise } from '../base/is-promise.ts';

/** The requests in flight of the limits (S29). */
export interface InFlightMetrics {
  /** A slot did not last as long as its request. */
  onEvent(event: InFlightEvent): void;
  /** The same store, with the slots counted that this process takes in it. */
  counted(store: LimitStore): LimitStore;
}

export function createInFlightMetrics(registers: Registry[]): InFlightMetrics {
  const events = new Counter({
    name: 'headgate_in_flight_events_total',
    help: 'Requests in flight that did not keep their slot until their end: over (one more than the limit runs), taken_again (another request may have run in its place), given_up (it ran for too long, and counts no more)',
    labelNames: ['type'],
    registers,
  });
  for (const type of ['over', 'taken_again', 'given_up'] satisfies InFlightEvent['type'][]) events.inc({ type }, 0);
  /** Tokens of slots by route. A route is one of the config, so there are few. */
  const held = new Map<string, Set<string>>();
  new Gauge({
    name: 'headgate_requests_in_flight',
    help: 'Requests of this process that inFlight counts, by route',
    labelNames: ['route'],
    registers,
    collect() {
      for (const [route, { size }] of held) this.set({ route }, size);
    },
  });
  const took = ({ route, token }: Slot, reply: SlotReply): SlotReply => {
    if (reply.held) getOrCreate(held, route, () => new Set<string>()).add(token);
    return reply;
  };
  return {
    onEvent: ({ type }) => events.inc({ type }),
    counted: (store) =>
      decorateStore(store, {
        // A renewal is the same call with the same token.
        holdSlot: (hold) => (slot, leaseMs) => {
          const reply = hold(slot, leaseMs);
          return isPromise(reply) ? reply.then((replied) => took(slot, replied)) : took(slot, reply);
        },
        releaseSlot: (release) => (slot) => {
          held.get(slot.route)?.delete(slot.token);
          return release(slot);
        },
      }),
  };
}
