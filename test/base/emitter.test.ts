import { describe, expect, it, vi } from 'vitest';
import { Emitter } from '../../src/base/emitter.ts';

describe('Emitter', () => {
  it('passes each event to the listener', () => {
    const received: number[] = [];
    const emitter = new Emitter<number>(
      (event) => received.push(event),
      () => {},
    );
    expect(emitter.hasListener).toBe(true);
    emitter.emit(1);
    emitter.emit(2);
    expect(received).toEqual([1, 2]);
  });

  it('does nothing without a listener', () => {
    const log = vi.fn();
    const emitter = new Emitter<number>(undefined, log);
    expect(emitter.hasListener).toBe(false);
    emitter.emit(1);
    expect(log).not.toHaveBeenCalled();
  });

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('listener');
      },
    ],
    ['rejects', () => Promise.reject(new Error('listener'))],
  ])('logs the error of a listener that %s, and throws nothing', async (_, listener) => {
    const log = vi.fn();
    new Emitter<number>(listener as () => void, log).emit(1);
    await Promise.resolve();
    await Promise.resolve();
    expect(log.mock.calls).toEqual([['headgate: the listener onEvent failed', new Error('listener')]]);
  });
});
