/** A worker that ends is replaced at once, unless workers keep ending. */
import { expect, it } from 'vitest';
import { RestartPause } from '../../src/workers/restart-pause.ts';

it('five workers within a minute are replaced at once; then the pause doubles up to 30 s', () => {
  const pause = new RestartPause();
  const pauses = Array.from({ length: 12 }, (_, i) => pause.next(i * 1_000));
  expect(pauses).toEqual([0, 0, 0, 0, 0, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
});

it('ends of more than a minute ago do not count', () => {
  const pause = new RestartPause();
  for (let i = 0; i < 6; i += 1) pause.next(0);
  expect(pause.next(60_000)).toBe(0);
});
