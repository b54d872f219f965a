import { afterEach, describe, expect, it, vi } from 'vitest';
import { Emitter } from '../../src/core/emitter.ts';

describe('Emitter', () => {
  afterEach(() => vi.restoreAllMocks());

  it('passes each event to the listener', () => {
    const received: number[] = [];
    const emitter = new Emitter<number>((event) => received.push(event));
    expect(emitter.hasListener).toBe(true);
    emitter.emit(1);
    emitter.emit(2);
    expect(received).toEqual([1, 2]);
  });

  it('does nothing without a listener', () => {
    const emitter = new Emitter<number>(undefined);
    expect(emitter.hasListener).toBe(false);
    expect(() => emitter.emit(1)).not.toThrow();
  });

  it("throws a listener's error later, not into the emitting code", () => {
    const tasks: (() => void)[] = [];
    vi.spyOn(globalThis, 'queueMicrotask').mockImplementation((task) => tasks.push(task));
    const emitter = new Emitter<number>(() => {
      throw new Error('listener');
    });
    emitter.emit(1);
    expect(tasks).toHaveLength(1);
    expect(tasks[0]).toThrow('listener');
  });
});
