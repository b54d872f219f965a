import { lineThrough } from './inputs.mjs';
import { simulate } from './simulate.mjs';

const DECISIONS = 200_000;

/**
 * Compares the model with a measurement: decisions per second of one process on one Redis with `concurrency` checks in
 * flight, predicted from what was measured at other concurrencies.
 * @param points see inputs.mjs
 * @param limiter see inputs.mjs; its `outsideScript` may come from this concurrency
 * @returns the prediction; `measured`: what the topic redis measured; `scaleOut`: what the topic scale-out measured, if
 *   it had as many checks in flight. Undefined if too little was measured.
 */
export function predict({ points, limiter, concurrency, seed }) {
  const measured = points.find((point) => point.concurrency === concurrency);
  const others = points.filter((point) => point !== measured);
  const alone = others.find((point) => point.concurrency === 1);
  // A process that waits after every call also pays for waking up, so its point is not on the line of the busy ones.
  const busy = others.filter((point) => point.concurrency > 1);
  if (limiter === undefined || measured === undefined || alone === undefined || busy.length < 2) return undefined;
  const { inFlight, perSecond, decisionsPerCall, outsideScript } = limiter;
  const script = lineThrough(others.map(({ records, call }) => [records, call]));
  const client = lineThrough(busy.map(({ records, cpu }) => [1 / records, cpu]));
  const oneWay = Math.max(0, 1e6 / alone.perSecond - alone.cpu - alone.call - outsideScript) / 2;
  const result = simulate({
    seed,
    accounts: 10_000,
    // Almost equal accounts, because that benchmark picks its keys in a random order.
    exponent: 1e-6,
    perSecond: 1,
    gateways: 1,
    shards: 1,
    inFlight: concurrency,
    decisions: DECISIONS,
    window: { max: Number.MAX_SAFE_INTEGER, micros: 1 },
    denialMicros: 0,
    cpu: { request: client.start / 2, answer: client.start / 2, call: client.slope },
    serviceOf: (records) => outsideScript + script.start + script.slope * records,
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
