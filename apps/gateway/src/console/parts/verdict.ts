import type { Windows } from '../api/answers.ts';
import { limitName, perText, spanText } from './format.ts';
import { isNear, type ShownWindow } from './window-bar.tsx';

/** The windows of an account on one route. */
export type RouteWindows = Windows['routes'][number];

/** The result of the next request on a route, if it costs one of each unit. */
export interface Verdict {
  readonly kind: 'blocked' | 'rejects' | 'near' | 'free' | 'unlimited';
  /** `rejects, room in 41 s` */
  readonly text: string;
  /** The window or block that rejects; undefined if the request would pass. */
  readonly by?: string;
  /** The limit that rejects; undefined if none does. */
  readonly limit?: ShownWindow['limit'];
}

/** Says at a glance whether a route accepts requests, and if not, when it will. */
export function verdictOf({ windows, blocked, inFlight }: RouteWindows): Verdict {
  if (windows.length === 0 && inFlight === null) return { kind: 'unlimited', text: 'no limit' };
  const full = windows.filter(({ remaining }) => remaining <= 0);
  const room = roomText(full, blocked?.forMs ?? 0);
  if (blocked !== null) return { kind: 'blocked', text: `blocked, ${room}`, by: 'a block' };
  const last = full.reduce<ShownWindow | undefined>(
    (latest, each) => (latest === undefined || each.resetMs > latest.resetMs ? each : latest),
    undefined,
  );
  if (last !== undefined) return { kind: 'rejects', text: `rejects, ${room}`, by: windowName(last), limit: last.limit };
  if (inFlight !== null && inFlight.running >= inFlight.max)
    return { kind: 'rejects', text: 'rejects, until a request has ended', by: 'the requests in flight' };
  return windows.some(isNear) ? { kind: 'near', text: 'nearly full' } : { kind: 'free', text: 'has room' };
}

/** `This route, 5 per minute` */
export function windowName({ limit, max, durationMs, unit, group }: ShownWindow): string {
  return `${limitName(limit, group)}, ${perText(max, durationMs, unit)}`;
}

function roomText(full: readonly ShownWindow[], blockedMs: number): string {
  if (full.some(({ max }) => max === 0)) return 'never room';
  return `room in ${spanText(Math.max(blockedMs, ...full.map(({ resetMs }) => resetMs)))}`;
}
