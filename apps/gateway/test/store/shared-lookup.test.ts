import type { LookupFunction } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import { shareLookups } from '../../src/store/shared-lookup.ts';

type Callback = Parameters<LookupFunction>[2];

describe('shared lookups', () => {
  it('T1: a name that does not resolve is looked up once at a time, however often a client connects', () => {
    const underWay: { readonly name: string; readonly answer: Callback }[] = [];
    const lookup = shareLookups((name, _options, answer) => void underWay.push({ name, answer }));
    const callbacks = Array.from({ length: 5 }, () => vi.fn<Callback>());
    for (const callback of callbacks) lookup('redis.internal', { all: true }, callback);
    lookup('redis.internal', { family: 6 }, vi.fn());
    lookup('other.internal', { all: true }, vi.fn());
    expect(underWay.map(({ name }) => name)).toEqual(['redis.internal', 'redis.internal', 'other.internal']);
    const error = new Error('EAI_AGAIN');
    underWay[0]?.answer(error, []);
    for (const callback of callbacks) expect(callback.mock.calls).toEqual([[error, []]]);
  });

  it('the result is not stored: the next call looks the name up again', () => {
    const names: string[] = [];
    const lookup = shareLookups((name, _options, answer) => {
      names.push(name);
      answer(null, '127.0.0.1', 4);
    });
    const callback = vi.fn<Callback>();
    lookup('redis.internal', {}, callback);
    lookup('redis.internal', {}, callback);
    expect(names).toHaveLength(2);
    expect(callback.mock.calls).toEqual([
      [null, '127.0.0.1', 4],
      [null, '127.0.0.1', 4],
    ]);
  });
});
