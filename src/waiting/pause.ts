import type { Decision, WindowStatus } from '../core/decision.ts';
import { REQUESTS } from '../core/unit.ts';
import type { WindowSet } from '../core/window-set.ts';

/**
 * While the failure policy decides, the store may be back long before the windows of this process are over. So the
 * store is asked again after this time.
 */
const DEGRADED_PAUSE_MS = 1_000;
/** A block may be lifted long before it is over, by any process. So the store is asked again after this time. */
const BLOCKED_PAUSE_MS = 60_000;
/**
 * Nobody knows when a request in flight ends. In this process a release ends the pause; for those of other processes, the
 * store is asked again after a random part of this time, so that the processes do not ask all at once.
 */
const IN_FLIGHT_PAUSE_MS = 1_000;

/** A queue that was served asks so much later than a queue that was not. */
const TURN_MS = 1;

/** How long the jobs of a queue wait before the first of them asks again. */
export class Pause {
  /**
   * @param until when a job can be accepted at the earliest, on the worker's clock
   * @param window the window that is over at `until`
   * @param asksAt when the first job asks again, at the latest
   */
  private constructor(
    readonly until: number,
    private readonly windowSet: WindowSet,
    private readonly window: WindowStatus | undefined,
    readonly asksAt = until,
    /** Whether it ends when a request in flight of this process ends (S29). */
    readonly endsWithRelease = false,
  ) {}

  /**
   * The pause after `decision`, or undefined if a job of these costs may fit now. A window without room stays so until it is
   * over, also after a decision that was accepted. So the job need not be rejected to know it. A block lasts until it
   * is over or lifted (S21).
   * @param now when the decision arrived, on the worker's clock
   * @param roundingMs how much later than the store's clock says a window may be over
   * @param wasServed whether a job of the queue was accepted since its last pause
   */
  static after(
    decision: Decision,
    costs: ReadonlyMap<string, number>,
    now: number,
    roundingMs: number,
    wasServed: boolean,
  ): Pause | undefined {
    const { blocked, degraded, windowSet } = decision;
    if (decision.inFlight !== undefined && !decision.accepted) {
      const asksAt = now + Math.ceil(IN_FLIGHT_PAUSE_MS * (0.25 + 0.75 * Math.random()));
      return new Pause(now + 1, windowSet, undefined, asksAt, true);
    }
    if (blocked !== undefined) {
      const waitMs = degraded ? Math.min(blocked.forMs, DEGRADED_PAUSE_MS) : blocked.forMs + roundingMs;
      return new Pause(now + waitMs, windowSet, undefined, now + Math.min(waitMs, BLOCKED_PAUSE_MS));
    }
    const [first, ...others] = decision.trace.filter(
      ({ remaining, unit = REQUESTS }) => remaining < (costs.get(unit) ?? 0),
    );
    if (first === undefined) return undefined;
    const last = others.reduce((latest, window) => (window.resetMs > latest.resetMs ? window : latest), first);
    if (degraded) return new Pause(now + Math.min(last.resetMs, DEGRADED_PAUSE_MS), windowSet, undefined);
    const until = now + last.resetMs + roundingMs;
    // Other accounts wait for the window of a group, too: those that got nothing ask first, so that none starves.
    return new Pause(until, windowSet, last, last.group !== undefined && wasServed ? until + TURN_MS : until);
  }

  /**
   * The earliest time, on the worker's clock, at which all of several jobs can have been accepted.
   * @param cost the sum of their costs, in requests
   * @param windowSet of these jobs; undefined if there are several. With several units, the costs are not summed up
   */
  earliest(cost: number, windowSet: WindowSet | undefined): number {
    const { window } = this;
    if (window === undefined || windowSet !== this.windowSet || windowSet.units !== undefined) return this.until;
    const waits = windowSet.windows.map(({ limit, max, durationMs }) => {
      // The instance of another window may end just after it accepted its max, and so may the one that follows.
      const atOnce = limit === window.limit && durationMs === window.durationMs ? 1 : 2;
      return Math.max(0, Math.ceil(cost / max) - atOnce) * durationMs;
    });
    return this.until + Math.max(...waits);
  }
}

/** How many requests like this one may still run at the same time, as far as an accepted decision says so. */
export function slotsAfter({ inFlight }: Decision): number {
  return inFlight === undefined ? Number.POSITIVE_INFINITY : inFlight.max - inFlight.running;
}

/** How many jobs of these costs still fit into every window of an accepted decision. */
export function roomAfter({ trace }: Decision, costs: ReadonlyMap<string, number>): number {
  return trace.reduce((room, { remaining, unit = REQUESTS }) => {
    const cost = costs.get(unit) ?? 0;
    return cost === 0 ? room : Math.min(room, Math.floor(remaining / cost));
  }, Number.POSITIVE_INFINITY);
}
