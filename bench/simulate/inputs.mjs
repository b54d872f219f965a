import { createCells } from '../support/cells.mjs';
import { median } from '../support/statistics.mjs';

/** Microseconds and bytes, as an earlier run measured them on a server of 2 cores; they hold where a topic was not measured. */
const DEFAULTS = { call: 7, record: 3.8, beside: 6, gateway: 150, bytesPerKey: 265, memory: 0.2 };
const CONCURRENCIES = [1, 16, 64, 256];

/**
 * What the other topics measured, as a simulation needs it.
 * @param load `(topic) => result`, undefined where there is none
 * @returns
 *   `values`: in microseconds `call` and `record`, what the server's script takes for a call and for each record of it; `beside`, what a call costs the
 *   server beside its script; `gateway`, CPU of a request in a gateway; `memory`, CPU of a check in memory; and `bytesPerKey`;
 *   `sources`: for each where it comes from; `points`: what was measured on one Redis, by concurrency
 */
export function readInputs(load) {
  const [redis, scaleOut, memory] = ['redis', 'scale-out', 'memory'].map(load);
  const points = redis === undefined ? [] : pointsOf(redis);
  const line = points.length < 2 ? undefined : lineThrough(points.map(({ records, call }) => [records, call]));
  const found = {
    call: line && [line.start, 'redis', redis],
    record: line && [line.slope, 'redis', redis],
    ...(scaleOut && ofScaleOut(scaleOut)),
    ...(memory && { memory: [memoryMicros(memory), 'memory', memory] }),
  };
  const isMeasured = (name) => found[name]?.[0] > 0;
  const each = (of) => Object.fromEntries(Object.keys(DEFAULTS).map((name) => [name, of(name)]));
  const values = each((name) => (isMeasured(name) ? found[name][0] : DEFAULTS[name]));
  const sources = each((name) => (isMeasured(name) ? sourceOf(found[name]) : 'default'));
  return { values, sources, points };
}

const sourceOf = ([, topic, { provenance }]) => `${topic}.json, commit ${provenance.commit}`;

function pointsOf({ figures }) {
  const cells = createCells(figures, 'ioredis');
  return CONCURRENCIES.flatMap((concurrency) => {
    const figure = (field) => cells.figure(field, `spread ${concurrency}`, 'headgate');
    if (figure('perSecond') === undefined) return [];
    const records = 1 / figure('callsPerDecision');
    const [call, cpu, perSecond] = [figure('microsPerCall'), figure('cpuMicros'), figure('perSecond')];
    return [{ concurrency, records, call, cpu, perSecond }];
  });
}

function ofScaleOut(result) {
  const all = Object.values(result.figures).flatMap((counts) => Object.values(counts).flat());
  const beside = all.map((figure) => (figure.serverMicros - figure.scriptMicros) * figure.decisionsPerCall);
  const gateway = createCells(result.figures).figure('cpuMicros', 'gateway, one Redis', '1');
  const named = (value) => [value, 'scale-out', result];
  return {
    beside: named(median(beside)),
    gateway: named(gateway),
    bytesPerKey: named(median(Object.values(result.bytesPerKey))),
  };
}

function memoryMicros({ figures }) {
  const ns = createCells(figures).figure('ns', 'accepted, 1,000,000 keys', 'headgate, await consume');
  return ns === undefined ? undefined : ns / 1_000;
}

/** Least squares. */
export function lineThrough(points) {
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x, y] = [mean(points.map(([left]) => left)), mean(points.map(([, right]) => right))];
  const slope =
    points.reduce((sum, [left, right]) => sum + (left - x) * (right - y), 0) /
    points.reduce((sum, [left]) => sum + (left - x) ** 2, 0);
  return { start: y - slope * x, slope };
}
