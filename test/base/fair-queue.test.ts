import { describe, expect, it } from 'vitest';
import { FairQueue } from '../../src/base/fair-queue.ts';

describe('a fair queue', () => {
  it('serves owners in turn, and each owner first in, first out', () => {
    const queue = new FairQueue<string>();
    for (const item of ['a1', 'a2', 'a3', 'b1', 'c1', 'b2']) queue.push(item[0] as string, item);
    expect([queue.size, queue.first]).toEqual([6, 'a1']);
    expect(Array.from({ length: 7 }, () => queue.next())).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', undefined]);
    expect([queue.size, queue.first]).toEqual([0, undefined]);
  });

  it('an owner that comes back waits for its next turn', () => {
    const queue = new FairQueue<string>();
    for (const item of ['a1', 'b1']) queue.push(item[0] as string, item);
    expect(queue.next()).toBe('a1');
    queue.push('a', 'a2');
    expect([queue.next(), queue.next()]).toEqual(['b1', 'a2']);
  });

  it('skips an owner that may not go; it keeps its turn', () => {
    const queue = new FairQueue<string>();
    for (const item of ['a1', 'b1', 'b2']) queue.push(item[0] as string, item);
    const notA = (owner: string) => owner !== 'a';
    expect([queue.next(notA), queue.next(), queue.next(notA), queue.next(notA)]).toEqual(['b1', 'a1', 'b2', undefined]);
  });

  it('forgets items that no longer wait', () => {
    const queue = new FairQueue<string>();
    for (const item of ['a1', 'a2', 'b1']) queue.push(item[0] as string, item);
    queue.delete('a', 'a1');
    queue.delete('b', 'b1');
    queue.delete('b', 'b1');
    expect([queue.size, queue.lengthOf('a'), queue.lengthOf('b')]).toEqual([1, 1, 0]);
    expect(queue.clear()).toEqual(['a2']);
    expect(queue.size).toBe(0);
  });

  it('an owner whose last item was deleted has no turn', () => {
    const queue = new FairQueue<string>();
    for (const item of ['a1', 'b1']) queue.push(item[0] as string, item);
    queue.delete('a', 'a1');
    expect([queue.first, queue.next(), queue.next()]).toEqual(['b1', 'b1', undefined]);
  });
});
