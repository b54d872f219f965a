/**
 * Numbers of requests in flight, one per limit that counts them (S29): the most that a limit allows, or how many run. A
 * limit that is absent does not count.
 */
export interface InFlight {
  /** Of the route's own limit: requests of one route of an account. */
  readonly route?: number | undefined;
  /** Of All methods: requests of all routes of an account together. */
  readonly allMethods?: number | undefined;
}

/** The place of one request among those in flight. */
export interface Slot {
  readonly account: string;
  readonly route: string;
  /** 1 to 64 letters, digits, `_`, `-` or `.`, which no other slot has. */
  readonly token: string;
  /** The most requests of each limit that counts this one. 0 only counts: such a slot is never taken. */
  readonly most: InFlight;
}

/** The answer of a store about a slot. */
export interface SlotReply {
  /** Whether the slot is held now, in each limit that counts it. */
  readonly held: boolean;
  /** How many requests of each limit are in flight, this one included if it is held. */
  readonly running: InFlight;
  /** Whether the failure policy decided, because the store failed or did not answer in time (S17). */
  readonly degraded?: boolean | undefined;
}

/** How many requests are in flight, and how many may be, of one limit. */
export interface InFlightStatus {
  readonly running: number;
  readonly max: number;
}

/** The limits in the order of checking. */
export const IN_FLIGHT_LIMITS = ['route', 'allMethods'] as const;

/** The longest lease of a slot, in milliseconds. */
export const LONGEST_SLOT_LEASE_MS = 86_400_000;

/** The limit to show: the one with the least room; if two are equal, the route's. Undefined without limits. */
export function inFlightStatus({ running }: Pick<SlotReply, 'running'>, most: InFlight): InFlightStatus | undefined {
  let shown: InFlightStatus | undefined;
  for (const limit of IN_FLIGHT_LIMITS) {
    const max = most[limit];
    if (max === undefined) continue;
    const status = { running: running[limit] ?? 0, max };
    if (shown === undefined || status.max - status.running < shown.max - shown.running) shown = status;
  }
  return shown;
}
