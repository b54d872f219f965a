import { describe, expect, it } from 'vitest';
import { SharedTimers } from '../../src/idempotency/shared-timers.ts';
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
  it('calls each at its time, once', async () => {
    const { timers, shared } = create();
    const start = timers.now();
    const called: [string, number][] = [];
    const note = (name: string) => () => void called.push([name, timers.now() - start]);
    shared.after(100, note('a'));
    await timers.advance(30);
    shared.after(100, note('b'));
    shared.after(10, note('c'));
    shared.after(100, note('d'));
    await timers.advance(1_000);
    expect(called).toEqual([
      ['c', 40],
      ['a', 100],
      ['b', 130],
      ['d', 130],
    ]);
    expect(timers.waiting).toBe(0);
  });

  it('does not call what was cancelled, however often, and wherever it stands', async () => {
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

  it('sets one timer for thousands that are cancelled', async () => {
    const { timers, shared, timersSet } = create();
    for (let i = 0; i < 5_000; i++) {
      shared.after(100, () => {})();
      if (i % 100 === 0) await timers.advance(1);
    }
    expect(timersSet()).toBe(1);
    await timers.advance(100);
    expect(timers.waiting).toBe(0);
  });

  it('what is called may wait again, and cancel what is due with it', async () => {
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
