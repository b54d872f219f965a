import { describe, expect, it } from 'vitest';
import { lineThrough, readInputs } from '../../bench/model/inputs.mjs';
import { PARAMETERS, settingsOf } from '../../bench/model/parameters.mjs';
import { predict } from '../../bench/model/prediction.mjs';
import { simulationReport } from '../../bench/support/simulation-report.mjs';

/** What the topic redis would write for a server that takes 10 µs per call and 4 µs per record. */
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
/** Cells of the topic scale-out. The servers take 25 µs per call of a gateway, 6 µs per call of the limiter, 4 µs per record. */
const cell = (records: number, callMicros: number, cpuMicros: number) => ({
  perSecond: 190_000,
  decisionsPerCall: records,
  serverMicros: callMicros / records + 4,
  scriptMicros: 4,
  cpuMicros,
});
const scaleOut = {
  provenance: { commit: 'def5678' },
  inFlight: { limiter: 64, gateway: 16 },
  bytesPerKey: { 'one Redis': 260, 'cluster of 3': 270 },
  figures: {
    'limiter, one Redis': { 1: [cell(8, 6, 3)], 2: [cell(14, 6, 3)], 4: [cell(16, 6, 4)] },
    'gateway, one Redis': { 1: [cell(3, 24, 90), cell(3, 99, 99), cell(3, 25, 95)], 2: [cell(3, 50, 200)] },
    'limiter, cluster of 3': { 1: [cell(1, 10, 15)] },
    'gateway, cluster of 3': { 1: [cell(1, 30, 120)], 2: [cell(1, 50, 300)] },
  },
};
const results: Record<string, object> = { redis, 'scale-out': scaleOut };
const load = (topic: string) => results[topic];
const loadOnly = (name: string, result: object) => (topic: string) => (topic === name ? result : undefined);

describe('readInputs', () => {
  it('takes the CPU of calls and gateways from single gateways, on one server and on a cluster', () => {
    const { values, sources } = readInputs(load);
    expect(values.record).toBeCloseTo(4, 6);
    expect(values).toMatchObject({ serverGateway: 95, clusterGateway: 120, bytesPerKey: 265 });
    expect(values.serverCall).toBeCloseTo(25, 6);
    expect(values.clusterCall).toBeCloseTo(30, 6);
    expect(new Set([sources.record, sources.clusterCall])).toEqual(new Set(['scale-out.json, commit def5678']));
  });

  it('uses defaults, named as such, for what was not measured; a check in memory has no default', () => {
    const none = readInputs(() => undefined);
    expect(none.values.memory).toBeUndefined();
    expect(new Set(Object.values(none.sources))).toEqual(new Set(['default']));
    const { memory: _, ...values } = none.values;
    for (const value of Object.values(values)) expect(value).toBeGreaterThan(0);
    expect([none.points, none.limiter]).toEqual([[], undefined]);
    const few = { ...scaleOut, figures: { 'gateway, one Redis': { 1: [cell(1, 24, 90)] } } };
    const { values: some, sources } = readInputs(loadOnly('scale-out', few));
    expect(some.serverGateway).toBe(90);
    expect([sources.serverGateway, sources.record, sources.clusterCall]).toEqual([
      'scale-out.json, commit def5678',
      'default',
      'default',
    ]);
    expect(some.clusterCall).toBe(none.values.clusterCall);
  });

  it('takes the check in memory only from a run with a million keys', () => {
    const memoryWith = (keys: string) => ({
      provenance: { commit: 'a' },
      figures: { [`accepted, ${keys} keys`]: { 'headgate, await consume': [{ ns: 1_900 }] } },
    });
    expect(readInputs(loadOnly('memory', memoryWith('1,000,000'))).values.memory).toBeCloseTo(1.9, 6);
    expect(readInputs(loadOnly('memory', memoryWith('1,000'))).values.memory).toBeUndefined();
  });

  it('fits a line by least squares', () => {
    expect(
      lineThrough([
        [0, 1],
        [1, 2],
        [2, 6],
      ]),
    ).toEqual({ start: 0.5, slope: 2.5 });
  });
});

describe('a fleet', () => {
  it('uses the costs of one server for one shard, and those of a cluster for more', () => {
    const values = readInputs(load).values;
    const [one, many] = [1, 3].map((shards) => settingsOf({ accounts: 1e9, shards, values }));
    expect([one?.serviceOf(2), many?.serviceOf(2)].map(Math.round)).toEqual([33, 38]);
    expect((many?.gateways ?? 0) / (one?.gateways ?? 1)).toBeCloseTo(120 / 95, 2);
    expect([one?.shards, many?.shards]).toEqual([1, 3]);
  });
});

describe('a prediction', () => {
  const { points, limiter } = readInputs(load);
  const about = { limiter, concurrency: 64, seed: 1 };

  it('does not use what was measured at its own concurrency', () => {
    const other = points.map((each) =>
      each.concurrency === 64 ? { ...each, perSecond: 1, cpu: 1_000, call: 1_000 } : each,
    );
    const [first, second] = [points, other].map((all) => predict({ points: all, ...about }));
    expect(second?.perSecond).toBe(first?.perSecond);
    expect(second?.measured.perSecond).toBe(1);
  });

  it('takes from scale-out the server time outside the script, and shows what scale-out measured of the same load', () => {
    expect(limiter?.outsideScript).toBeCloseTo(6, 6);
    expect(predict({ points, ...about })?.scaleOut).toEqual({ perSecond: 190_000, decisionsPerCall: 8 });
    expect(predict({ points, ...about, limiter: limiter && { ...limiter, inFlight: 16 } })?.scaleOut).toBeUndefined();
  });

  it('is bounded by the speed of the server and of the client', () => {
    const { perSecond = 0, decisionsPerCall = 0 } = predict({ points, ...about }) ?? {};
    // The rate can be a little above that of the server's records: two requests of one account are one record.
    expect(perSecond).toBeLessThan((1.01 * 1e6) / (4 + 16 / decisionsPerCall));
    expect(perSecond).toBeGreaterThan(50_000);
  });

  it('is undefined without the other concurrencies or without scale-out', () => {
    expect(predict({ points: points.slice(2), ...about })).toBeUndefined();
    expect(predict({ points, ...about, limiter: undefined })).toBeUndefined();
  });
});

describe('the report of the topic simulation', () => {
  const result = (memory: number | undefined) => {
    const { values, sources, points, limiter } = readInputs(load);
    const fleet = {
      ...{ name: '', accounts: 1e9, hotShare: 0, perSecond: 3e6, gateways: 1_000, shards: 100 },
      ...{ utilisation: { mean: 0.5, most: 0.6 }, sliceSeconds: 0.0864, serverMicros: 28, records: 1e9 },
      ...{ refused: 0.1, local: 0.05, latencyMs: { p50: 0.5, p99: 1, p999: 1.5 } },
    };
    const prediction = predict({ points, limiter, concurrency: 64, seed: 1 });
    return {
      ...{ decisions: 300_000, parameters: PARAMETERS, values: { ...values, memory }, sources, prediction },
      ...{ fleets: [fleet], variations: [fleet] },
    };
  };
  const sectionOf = (memory?: number): string => simulationReport(result(memory)).markdown;

  it('mentions a check in memory only if one was measured', () => {
    expect(sectionOf(1.88)).toContain('in its own memory takes 1.88 core-seconds');
    expect(sectionOf()).not.toContain('memory takes');
    expect(sectionOf()).not.toMatch(/undefined|NaN/);
  });

  it('shows how long a slice is', () => {
    expect(sectionOf()).toMatch(/slice, s \|\n.*\n\| 10⁹ .* 0\.086 \|/);
  });
});
