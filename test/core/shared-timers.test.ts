import { describe, expect, it } from 'vitest';
import { SharedTimers } from '../../src/core/shared-timers.ts';
import { createFakeTimers } from '../support/fake-timers.ts';

function create() {
  const timers = createFakeTimers();
  let set = 0;
  const shared = new SharedTimers(timers, (call, ms) => {
    set++;
    timers.after(ms, call, true);
  });
  return { timers, shared, timersSet: () => set };
}

describe('SharedTimers', () => {
  it('makes each call once, at its time', async () => {
    const { timers, shared } = create();
    const start = timers.now();
    const called: [string, number][] = [];
    const record = (name: string) => () => void called.push([name, timers.now() - start]);
    shared.after(100, record('a'));
    await timers.advance(30);
    shared.after(100, record('b'));
    shared.after(10, record('c'));
    shared.after(100, record('d'));
    await timers.advance(1_000);
    expect(called).toEqual([
      ['c', 40],
      ['a', 100],
      ['b', 130],
      ['d', 130],
    ]);
    expect(timers.waiting).toBe(0);
  });

  it('does not make cancelled calls, at any position in the queue, even if cancelled twice', async () => {
    const { timers, shared } = create();
    const called: number[] = [];
    const cancel = [0, 1, 2, 3].map((i) => shared.after(100, () => void called.push(i)));
    for (const i of [0, 2, 2, 3]) cancel[i]?.();
    await timers.advance(100);
    expect(called).toEqual([1]);
    cancel[1]?.();
    shared.after(100, () => void called.push(4));
    await timers.advance(100);
    expect(called).toEqual([1, 4]);
  });

  it('sets one timer for thousands of cancelled calls', async () => {
    const { timers, shared, timersSet } = create();
    for (let i = 0; i < 5_000; i++) {
      shared.after(100, () => {})();
      if (i % 100 === 0) await timers.advance(1);
    }
    expect(timersSet()).toBe(1);
    await timers.advance(100);
    expect(timers.waiting).toBe(0);
  });

  it('a call may add another call, and cancel one that is due at the same time', async () => {
    const { timers, shared } = create();
    const start = timers.now();
    const called: [string, number][] = [];
    let cancelOther = (): void => {};
    const again = (): void => {
      called.push(['again', timers.now() - start]);
      cancelOther();
      if (called.length < 3) shared.after(100, again);
    };
    shared.after(100, again);
    cancelOther = shared.after(100, () => void called.push(['other', 0]));
    await timers.advance(1_000);
    expect(called).toEqual([
      ['again', 100],
      ['again', 200],
      ['again', 300],
    ]);
  });
});
