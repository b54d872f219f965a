import type { LimitTexts } from './limits.ts';

/** All that the playground shows, and what a link has. */
export interface State {
  readonly current: LimitTexts;
  readonly candidate: LimitTexts | undefined;
  /** Limits that replace the current ones at a moment. */
  readonly adjustment?: { readonly atMs: number; readonly limits: LimitTexts } | undefined;
  readonly moments: readonly number[];
  readonly spanMs: number;
}

export interface Preset extends State {
  readonly name: string;
  /** What to look at. */
  readonly lesson: string;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const every = (step: number, count: number, from = 0): number[] =>
  Array.from({ length: count }, (_, index) => from + index * step);

export const FIRST: Preset = {
  name: 'A first look',
  lesson:
    'The first request starts both windows. Each lasts exactly its duration, and then waits for the next accepted request. ' +
    'A request must fit every window: if one is full, the request is rejected, and no window is charged.',
  current: { route: '', allMethods: '3/10s, 5/30s' },
  candidate: undefined,
  moments: [4, 6, 8, 10, 16, 19, 21, 36].map((s) => s * SECOND),
  spanMs: MINUTE,
};

export const PRESETS: readonly Preset[] = [
  FIRST,
  {
    name: 'An email API',
    lesson:
      'The route has a limit of its own, 10 per minute, beside the limit of every route. Twelve requests in twelve seconds: ' +
      'the last two are rejected by the route. The day has been charged only ten.',
    current: { route: '10/1m', allMethods: '60/1m, 5000/1d' },
    candidate: undefined,
    moments: [...every(SECOND, 12, 5 * SECOND), 66 * SECOND],
    spanMs: 2 * MINUTE,
  },
  {
    name: 'A burst',
    lesson:
      'Ten requests arrive at once. The window of one second lets two pass, so the long window is not used up in a moment. ' +
      'A short window beside a long one smooths the traffic.',
    current: { route: '', allMethods: '2/1s, 12/30s' },
    candidate: undefined,
    moments: [...every(0, 10, SECOND), ...every(700, 18, 3 * SECOND)],
    spanMs: 30 * SECOND,
  },
  {
    name: 'A daily quota',
    lesson:
      'Five per day. The day starts with the first request, not at midnight, and it ends exactly 24 hours later. The next ' +
      'day starts with the next accepted request, whenever that is.',
    current: { route: '', allMethods: '5/1d' },
    candidate: undefined,
    moments: [9, 11, 14, 17, 20, 23, 30, 40, 57, 60].map((h) => h * HOUR),
    spanMs: 3 * DAY,
  },
  {
    name: 'A stricter candidate',
    lesson:
      'The same requests with the limit of today and with a candidate for tomorrow. A ring marks what the candidate newly ' +
      'rejects, so you see the effect before your customers do.',
    current: { route: '', allMethods: '6/30s' },
    candidate: { route: '', allMethods: '2/5s, 6/30s' },
    moments: [2, 3, 4, 10, 11, 12, 13, 40, 41, 42, 43, 50].map((s) => s * SECOND),
    spanMs: MINUTE,
  },
  {
    name: 'A limit that is raised',
    lesson:
      'At 20 s an operator raises the limit from 3 to 6, while requests go on. The window and its count stay: three more ' +
      'requests fit at once. The same call can lower a limit.',
    current: { route: '', allMethods: '3/40s' },
    candidate: undefined,
    adjustment: { atMs: 20 * SECOND, limits: { route: '', allMethods: '6/40s' } },
    moments: [4, 7, 10, 13, 16, 22, 25, 28, 31, 46].map((s) => s * SECOND),
    spanMs: MINUTE,
  },
];
