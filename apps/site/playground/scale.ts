import { formatMs, stepOf, ticks } from './moments.ts';

/** The free space left of the first moment and right of the last, so that a mark there is whole. */
export const EDGE = 14;

/** A moment that the axis names: where its line is, and where its text. */
export interface Tick {
  readonly x: number;
  readonly text: string;
  readonly textX: number;
  readonly anchor: 'start' | 'middle' | 'end';
}

/** How a span of time lies on a width in pixels. */
export interface Scale {
  readonly width: number;
  readonly spanMs: number;
  /** The steps in which time moves. */
  readonly stepMs: number;
  readonly ticks: readonly Tick[];
  x(atMs: number): number;
  /** The moment at a place, in whole steps. */
  momentAt(px: number): number;
  /** The nearest step of the span. */
  snap(atMs: number): number;
}

export function createScale(spanMs: number, width: number): Scale {
  const inner = width - 2 * EDGE;
  const stepMs = stepOf(spanMs);
  const x = (atMs: number): number => EDGE + (atMs / spanMs) * inner;
  const snap = (atMs: number): number => Math.min(spanMs, Math.max(0, Math.round(atMs / stepMs) * stepMs));
  return {
    width,
    spanMs,
    stepMs,
    x,
    snap,
    momentAt: (px) => snap(((px - EDGE) / inner) * spanMs),
    ticks: ticks(spanMs, Math.max(3, Math.floor(width / 90))).map((atMs) => {
      if (atMs === 0) return { x: x(0), text: '0', textX: 2, anchor: 'start' };
      const tick = { x: x(atMs), text: formatMs(atMs) };
      // The last text ends with the picture.
      return tick.x > width - 40
        ? { ...tick, textX: width - 4, anchor: 'end' }
        : { ...tick, textX: tick.x, anchor: 'middle' };
    }),
  };
}
