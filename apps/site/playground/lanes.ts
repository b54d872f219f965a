import { type Answered, type Change, changes, play, type WindowRow, windowRows } from './history.ts';
import type { Policy } from './limits.ts';
import { MARK, type Marks } from './marks.ts';

/** The requests and windows of one policy. */
export interface Lane {
  readonly name: string;
  readonly policy: Policy;
  readonly history: readonly Answered[];
  readonly rows: readonly WindowRow[];
  /** What it decides otherwise than the lane before, request by request. */
  readonly changes: readonly Change[];
}

/** Lets the same requests pass the limits, and the candidate if there is one. */
export function lanesOf(current: Policy, candidate: Policy | undefined, moments: readonly number[]): readonly Lane[] {
  const laneOf = (name: string, policy: Policy): Lane => {
    const history = play(policy, moments);
    return { name, policy, history, rows: windowRows(history, policy), changes: [] };
  };
  const now = laneOf('Current', current);
  if (candidate === undefined) return [now];
  const next = laneOf('Candidate', candidate);
  return [now, { ...next, changes: changes(now.history, next.history) }];
}

/** The height of the axis above the lanes. */
export const AXIS = 34;
/** The height of a window's bar, and of all that a window has. */
export const BAR = 30;
const ROW = 58;

/** A lane, and where its parts are. */
export interface PlacedLane {
  readonly lane: Lane;
  readonly top: number;
  /** The line on which the first row of marks is. */
  readonly ground: number;
  readonly rows: readonly { readonly row: WindowRow; readonly top: number }[];
  readonly bottom: number;
}

export function placeLanes(lanes: readonly Lane[], { rows: high, piles }: Marks): readonly PlacedLane[] {
  // Two rows at least: without them the windows would move as soon as two requests are near each other.
  const above = Math.max(2, high + (piles.length > 0 ? 1 : 0)) * MARK;
  let top = AXIS;
  return lanes.map((lane) => {
    const ground = top + (lanes.length > 1 ? 24 : 0) + above;
    const rows = lane.rows.map((row, index) => ({ row, top: ground + 16 + index * ROW }));
    const placed = { lane, top, ground, rows, bottom: ground + 16 + rows.length * ROW };
    top = placed.bottom + (lanes.length > 1 ? 12 : 0);
    return placed;
  });
}
