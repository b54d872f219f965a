import { describe, expect, it } from 'vitest';
import { CircuitBreaker } from '../../../src/stores/shared/circuit-breaker.ts';
import { LargeValues } from '../../../src/stores/shared/large-values.ts';

const KIB = 1_024;
const DEADLINE_MS = 30;

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Large values whose answers the test gives. */
function start(maxBytesPerScope = 1_024 * KIB, deadlineMs = 10_000) {
  let isReady = true;
  const breaker = new CircuitBreaker({ deadlineMs, isReady: () => isReady, isHarmless: () => false });
  const large = new LargeValues({ breaker, deadlineMs, maxBytesPerScope, onError: undefined });
  const underWay: { readonly name: string; readonly answer: (value: string) => void }[] = [];
  const names: string[] = [];
  const run = (scope: string, kib: number, name = scope): Promise<string> =>
    large.run(scope, kib * KIB, () => {
      names.push(name);
      return new Promise((answer) => underWay.push({ name, answer }));
    });
  /** Answers the call that has been under way for the longest time. */
  const answerNext = async (): Promise<void> => {
    await turn();
    const { name, answer } = underWay.shift() as (typeof underWay)[number];
    answer(name);
    await turn();
  };
  return {
    large,
    breaker,
    names,
    run,
    answerNext,
    disconnect: () => {
      isReady = false;
    },
  };
}

const failure = (call: Promise<unknown>): Promise<unknown> => call.catch((error: unknown) => error);

describe('large values', () => {
  it('are under way up to 256 KiB at once; a single value may be longer', async () => {
    const { names, run, answerNext } = start(4_096 * KIB);
    const calls = [run('a', 100, '1'), run('a', 100, '2'), run('a', 600, '3'), run('a', 50, '4')];
    await turn();
    expect(names).toEqual(['1', '2']);
    await answerNext();
    expect(names).toEqual(['1', '2']);
    await answerNext();
    expect(names).toEqual(['1', '2', '3']);
    await answerNext();
    expect(names).toEqual(['1', '2', '3', '4']);
    await answerNext();
    expect(await Promise.all(calls)).toEqual(['1', '2', '3', '4']);
  });

  it('the scopes take turns, and the values of one scope keep their order', async () => {
    const { large, names, run, answerNext } = start();
    const calls = ['a1', 'a2', 'a3', 'b1', 'c1', 'c2'].map((name) => run(name[0] as string, 200, name));
    for (const _ of calls) await answerNext();
    await Promise.all(calls);
    expect(names).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'c2']);
    expect(large.bytes).toBe(0);
  });

  it('past the budget of a scope: refused at once, for that scope only; a single value always fits', async () => {
    const { large, run, answerNext } = start(500 * KIB);
    const calls = [run('a', 200), run('a', 200), run('b', 600)];
    expect(await failure(run('a', 200))).toMatchObject({ code: 'store_unavailable', sent: false });
    expect(await failure(run('b', 1))).toMatchObject({ code: 'store_unavailable', sent: false });
    calls.push(run('a', 100));
    expect(large.refused).toBe(2);
    for (const _ of calls) await answerNext();
    await Promise.all(calls);
    expect(large.bytes).toBe(0);
    const again = run('a', 500);
    await answerNext();
    await again;
  });

  it('whose turn does not come within 2 seconds are refused, and give their budget back', async () => {
    const { large, run, names, answerNext } = start();
    const first = run('a', 300, 'first');
    const second = await failure(run('b', 300, 'second'));
    expect(second).toMatchObject({ code: 'store_unavailable', sent: false });
    expect([large.bytes, large.refused]).toEqual([300 * KIB, 1]);
    await answerNext();
    await first;
    expect([large.bytes, names]).toEqual([0, ['first']]);
  });

  it('have a deadline by size', async () => {
    const { run } = start(undefined, DEADLINE_MS);
    const before = performance.now();
    expect(await failure(run('a', 1))).toMatchObject({ code: 'store_timeout' });
    const small = performance.now() - before;
    expect(await failure(run('a', 200))).toMatchObject({ code: 'store_timeout', deadlineMs: expect.any(Number) });
    // 200 KiB have about 195 ms more at 1 MiB per second.
    expect(performance.now() - before - small).toBeGreaterThan(DEADLINE_MS + 190);
  });

  it('that are given up stay under way, so a frozen server gets no further ones', async () => {
    const { large, breaker, run, names, answerNext } = start(undefined, DEADLINE_MS);
    for (let i = 0; i < 5; i++) expect(await failure(run('a', 50))).toMatchObject({ code: 'store_timeout' });
    expect(breaker.state).toBe('open');
    expect(await failure(run('b', 50))).toMatchObject({ code: 'store_unavailable', sent: false });
    expect([names.length, large.bytes]).toEqual([5, 250 * KIB]);
    for (let i = 0; i < 5; i++) await answerNext();
    expect(large.bytes).toBe(0);
  });

  it('are not sent without a connection', async () => {
    const { large, run, names, disconnect } = start();
    disconnect();
    expect(await failure(run('a', 50))).toMatchObject({ code: 'store_unavailable', sent: false });
    expect([names, large.bytes]).toEqual([[], 0]);
  });
});
