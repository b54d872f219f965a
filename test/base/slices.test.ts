import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { inSlices } from '../../src/base/slices.ts';
import { turnsOf } from '../support/turns.ts';

/** Keeps the event loop busy. */
function work(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

it('lets other work run between slices, and does everything in order', async () => {
  const done: number[] = [];
  const turns = await turnsOf(
    inSlices([1, 2, 3, 4, 5, 6], (item) => {
      // More than a slice, so other work can run after each item.
      work(5);
      done.push(item);
    }),
  );
  expect(done).toEqual([1, 2, 3, 4, 5, 6]);
  expect(turns).toBeGreaterThanOrEqual(3);
});

it('little work is done at once', async () => {
  const done: number[] = [];
  const promise = inSlices([1, 2], (item) => done.push(item));
  expect(done).toEqual([1, 2]);
  expect(await turnsOf(promise)).toBe(0);
});

it('rejects with what the work throws, and goes no further', async () => {
  const done: number[] = [];
  const promise = inSlices([1, 2, 3], (item) => {
    if (item === 2) throw new Error('two');
    done.push(item);
  });
  await expect(promise).rejects.toThrow('two');
  expect(done).toEqual([1]);
});

it.each([
  ['without setImmediate', undefined],
  [
    'whose setImmediate throws',
    () => {
      throw new Error('not supported');
    },
  ],
])('does so on a runtime %s', async (_runtime, setImmediate) => {
  vi.stubGlobal('setImmediate', setImmediate);
  try {
    const done: string[] = [];
    const timer = new Promise<void>((resolve) =>
      setTimeout(() => {
        done.push('other work');
        resolve();
      }, 0),
    );
    await inSlices([1, 2], (item) => {
      work(5);
      done.push(`item ${item}`);
    });
    await timer;
    expect(done).toEqual(['item 1', 'other work', 'item 2']);
  } finally {
    vi.unstubAllGlobals();
  }
});

describe('on a clock that the work moves', () => {
  let now = 0;
  const turn = vi.fn((resolve: () => void) => resolve());

  beforeEach(() => {
    now = 100;
    turn.mockClear();
    vi.stubGlobal('performance', { now: () => now });
    vi.stubGlobal('setImmediate', turn);
  });
  afterEach(() => vi.unstubAllGlobals());

  it.each([
    ['a slice ends after exactly 4 ms', [4, 4], 2],
    ['a slice goes on below 4 ms, and there is a turn at the end', [3.9], 1],
    ['half a millisecond at the end is little', [0.5], 0],
    ['more than half a millisecond at the end is not', [0.6], 1],
    ['a turn begins another slice', [4, 0.5], 1],
    ['nothing takes no turn', [], 0],
  ])('%s', async (_, spans, turns) => {
    await inSlices(spans, (span) => {
      now += span;
    });
    expect(turn).toHaveBeenCalledTimes(turns);
  });
});
