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
export function verdictOf(shown: RouteWindows): Verdict {
  // The limits of a group count as those of the account.
  const all = [{ ...shown, group: undefined }, ...shown.groups];
  const windows = all.flatMap((each) => each.windows);
  if (windows.length === 0 && all.every(({ inFlight }) => inFlight === null))
    return { kind: 'unlimited', text: 'no limit' };
  const full = windows.filter(({ remaining }) => remaining <= 0);
  const blocking = all.find(({ blocked }) => blocked !== null);
  const room = roomText(full, blocking?.blocked?.forMs ?? 0);
  if (blocking !== undefined) return { kind: 'blocked', text: `blocked, ${room}`, by: `a block${ofGroup(blocking)}` };
  const last = full.reduce<ShownWindow | undefined>(
    (latest, each) => (latest === undefined || each.resetMs > latest.resetMs ? each : latest),
    undefined,
  );
  // The limit of a group is changed on the page of the group.
  if (last !== undefined)
    return {
      kind: 'rejects',
      text: `rejects, ${room}`,
      by: windowName(last),
      ...(last.group === undefined && { limit: last.limit }),
    };
  const running = all.find(({ inFlight }) => inFlight !== null && inFlight.running >= inFlight.max);
  if (running !== undefined) {
    const by = `the requests in flight${ofGroup(running)}`;
    return { kind: 'rejects', text: 'rejects, until a request has ended', by };
  }
  return windows.some(isNear) ? { kind: 'near', text: 'nearly full' } : { kind: 'free', text: 'has room' };
}

function ofGroup({ group }: { readonly group?: string | undefined }): string {
  return group === undefined ? '' : ` of the group ${group}`;
}

/** `This route, 5 per minute` */
export function windowName({ limit, max, durationMs, unit, group }: ShownWindow): string {
  return `${limitName(limit, group)}, ${perText(max, durationMs, unit)}`;
}

function roomText(full: readonly ShownWindow[], blockedMs: number): string {
  if (full.some(({ max }) => max === 0)) return 'never room';
  return `room in ${spanText(Math.max(blockedMs, ...full.map(({ resetMs }) => resetMs)))}`;
}
