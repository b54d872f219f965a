import { describe, expect, it } from 'vitest';
import { lineThrough, readInputs } from '../../bench/simulate/inputs.mjs';
import { predict } from '../../bench/simulate/prediction.mjs';

/** A server that takes 10 µs for a call and 4 for each record; what the `redis` topic would write of it. */
const point = (records: number, cpuMicros: number, perSecond: number) => ({
  perSecond,
  cpuMicros,
  callsPerDecision: 1 / records,
  microsPerCall: 10 + 4 * records,
});
const redis = {
  provenance: { commit: 'abc1234' },
  figures: Object.fromEntries(
    [
      ['spread 1', point(1, 40, 10_000)],
      ['spread 16', point(4, 6, 110_000)],
      ['spread 64', point(8, 4, 160_000)],
      ['spread 256', point(28, 2, 210_000)],
    ].map(([name, figure]) => [name, { 'headgate on ioredis': [figure] }]),
  ),
};
const load = (topic: string) => (topic === 'redis' ? redis : undefined);

describe('what a simulation starts from', () => {
  it('is what was measured, and where nothing was, a default that says so', () => {
    const { values, sources } = readInputs(load);
    expect(values.call).toBeCloseTo(10, 6);
    expect(values.record).toBeCloseTo(4, 6);
    expect(sources.call).toBe('redis.json, commit abc1234');
    expect(sources.gateway).toBe('default');
    const none = readInputs(() => undefined);
    expect(new Set(Object.values(none.sources))).toEqual(new Set(['default']));
    for (const value of Object.values(none.values)) expect(value).toBeGreaterThan(0);
    expect(none.points).toEqual([]);
  });

  it('of the topic scale-out is the medians of its cells', () => {
    const cell = { decisionsPerCall: 2, serverMicros: 9, scriptMicros: 6, cpuMicros: 130 };
    const figures = { 'gateway, one Redis': { 1: [cell, { ...cell, cpuMicros: 150 }, { ...cell, cpuMicros: 140 }] } };
    const result = { provenance: { commit: 'def' }, figures, bytesPerKey: { 'one Redis': 264 } };
    const { values, sources } = readInputs((topic: string) => (topic === 'scale-out' ? result : undefined));
    expect(values).toMatchObject({ beside: 6, gateway: 140, bytesPerKey: 264 });
    expect(sources.beside).toBe('scale-out.json, commit def');
  });

  it('is a line by least squares', () => {
    expect(
      lineThrough([
        [0, 1],
        [1, 2],
        [2, 6],
      ]),
    ).toEqual({ start: 0.5, slope: 2.5 });
  });
});

describe('a prediction', () => {
  const { points } = readInputs(load);

  it('does not know what was measured at its own concurrency', () => {
    const other = points.map((each) =>
      each.concurrency === 64 ? { ...each, perSecond: 1, cpu: 1_000, call: 1_000 } : each,
    );
    const [first, second] = [points, other].map((all) => predict({ points: all, beside: 6, concurrency: 64, seed: 1 }));
    expect(second?.perSecond).toBe(first?.perSecond);
    expect(second?.measured.perSecond).toBe(1);
  });

  it('is bounded by what the server can do, and by what the client can', () => {
    const { perSecond = 0, decisionsPerCall = 0 } = predict({ points, beside: 6, concurrency: 64, seed: 1 }) ?? {};
    expect(perSecond).toBeLessThan(1e6 / (4 + 10 / decisionsPerCall));
    expect(perSecond).toBeGreaterThan(50_000);
  });

  it('needs the other concurrencies', () => {
    expect(predict({ points: points.slice(2), beside: 6, concurrency: 64, seed: 1 })).toBeUndefined();
  });
});
