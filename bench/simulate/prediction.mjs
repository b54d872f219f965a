import { lineThrough } from './inputs.mjs';
import { simulate } from './simulate.mjs';

const DECISIONS = 200_000;

/**
 * The model against a measurement: decisions a second of one process on one Redis, `concurrency` of them under way, from what was measured at other
 * concurrencies.
 * @param points see inputs.mjs
 * @param limiter see inputs.mjs; its `beside` may be of this concurrency
 * @returns `measured` by `redis`, and what `scaleOut` measured where that had as many under way; undefined where too little was measured
 */
export function predict({ points, limiter, concurrency, seed }) {
  const measured = points.find((point) => point.concurrency === concurrency);
  const others = points.filter((point) => point !== measured);
  const alone = others.find((point) => point.concurrency === 1);
  // A process that waits after every call pays for waking up; that is no part of the line.
  const busy = others.filter((point) => point.concurrency > 1);
  if (limiter === undefined || measured === undefined || alone === undefined || busy.length < 2) return undefined;
  const { inFlight, perSecond, decisionsPerCall, beside } = limiter;
  const script = lineThrough(others.map(({ records, call }) => [records, call]));
  const client = lineThrough(busy.map(({ records, cpu }) => [1 / records, cpu]));
  const oneWay = Math.max(0, 1e6 / alone.perSecond - alone.cpu - alone.call - beside) / 2;
  const result = simulate({
    seed,
    accounts: 10_000,
    // All alike, or nearly so: that benchmark's keys come in a random order.
    exponent: 1e-6,
    perSecond: 1,
    gateways: 1,
    shards: 1,
    inFlight: concurrency,
    decisions: DECISIONS,
    window: { max: Number.MAX_SAFE_INTEGER, micros: 1 },
    denialMicros: 0,
    cpu: { request: client.start / 2, answer: client.start / 2, call: client.slope },
    serviceOf: (records) => beside + script.start + script.slope * records,
    oneWay: () => oneWay,
  });
  const [{ calls }] = result.shards;
  return {
    concurrency,
    perSecond: (result.decisions / result.endedMicros) * 1e6,
    decisionsPerCall: result.decisions / calls,
    measured: { perSecond: measured.perSecond, decisionsPerCall: measured.records },
    scaleOut: inFlight === concurrency ? { perSecond, decisionsPerCall } : undefined,
  };
}
