import { createCells } from 'headgate-bench/cells';
import { median } from 'headgate-bench/statistics';

/**
 * Microseconds of CPU, and bytes, from an earlier run on a machine with 2 cores; used if scale-out was not measured.
 */
const DEFAULTS = {
  record: 4,
  serverCall: 26,
  clusterCall: 25,
  serverGateway: 95,
  clusterGateway: 123,
  bytesPerKey: 265,
};
const CONCURRENCIES = [1, 16, 64, 256];
const LIMITER = 'limiter, one Redis';
const ONE_PROCESS = '1';

/**
 * What the other topics measured, in the form that a simulation needs.
 * @param load `(topic) => result`, undefined if the topic has no result
 * @returns
 *   - `values`: microseconds of CPU, and bytes.
 *     `serverCall`, `clusterCall`: what a call of a gateway costs one server, or a server of a cluster, without its
 *     records;
 *     `record`: what each record of a call costs the server;
 *     `serverGateway`, `clusterGateway`: what a request costs a gateway;
 *     `memory`: what a check in memory costs, undefined if it was not measured;
 *     `bytesPerKey`: size of a record;
 *   - `sources`: where each value comes from;
 *   - `points`: what was measured on one Redis, one point per concurrency;
 *   - `limiter`: `{ inFlight, perSecond, decisionsPerCall, outsideScript }` of the limiter alone, one process on one
 *     Redis. `outsideScript` is what a call costs the server outside its script: CPU minus script time by the server's
 *     clock. The two are comparable only if the server hardly waits for a core, as in that measurement.
 */
export function readInputs(load) {
  const [redis, scaleOut, memory] = ['redis', 'scale-out', 'memory'].map(load);
  const measured = { ...(scaleOut && scaleOutValues(scaleOut)), memory: memory && memoryMicros(memory) };
  const isMeasured = (name) => measured[name] > 0;
  const names = [...Object.keys(DEFAULTS), 'memory'];
  const byName = (pick) => Object.fromEntries(names.map((name) => [name, pick(name)]));
  const values = byName((name) => (isMeasured(name) ? measured[name] : DEFAULTS[name]));
  const fileOf = (name) => (name === 'memory' ? sourceOf('memory', memory) : sourceOf('scale-out', scaleOut));
  const sources = byName((name) => (isMeasured(name) ? fileOf(name) : 'default'));
  return { values, sources, points: redis ? pointsOf(redis) : [], limiter: scaleOut && limiterFigures(scaleOut) };
}

const sourceOf = (topic, { provenance }) => `${topic}.json, commit ${provenance.commit}`;

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

function limiterFigures({ figures, inFlight }) {
  const rounds = figures[LIMITER]?.[ONE_PROCESS];
  if (rounds === undefined) return undefined;
  const medianOf = (pick) => median(rounds.map(pick));
  return {
    inFlight: inFlight.limiter,
    perSecond: medianOf(({ perSecond }) => perSecond),
    decisionsPerCall: medianOf(({ decisionsPerCall }) => decisionsPerCall),
    outsideScript: medianOf((round) => (round.serverMicros - round.scriptMicros) * round.decisionsPerCall),
  };
}

/** CPU only. A call of one `headgate serve` costs the server its whole CPU per call, minus the part of its records. */
function scaleOutValues({ figures, bytesPerKey }) {
  const record = recordMicros(figures[LIMITER] ?? {});
  const gatewayOn = (store, pick) => {
    const rounds = figures[`gateway, ${store}`]?.[ONE_PROCESS];
    return rounds && median(rounds.map(pick));
  };
  const call = ({ serverMicros, decisionsPerCall }) => (serverMicros - (record ?? DEFAULTS.record)) * decisionsPerCall;
  const cpu = ({ cpuMicros }) => cpuMicros;
  return {
    record,
    serverCall: gatewayOn('one Redis', call),
    clusterCall: gatewayOn('cluster of 3', call),
    serverGateway: gatewayOn('one Redis', cpu),
    clusterGateway: gatewayOn('cluster of 3', cpu),
    bytesPerKey: median(Object.values(bytesPerKey)),
  };
}

/**
 * With more processes more checks are in flight, so a call has more records. The slope is what one more record costs;
 * undefined if there are too few figures.
 */
function recordMicros(counts) {
  const points = Object.values(counts).map((rounds) => [
    median(rounds.map(({ decisionsPerCall }) => decisionsPerCall)),
    median(rounds.map(({ serverMicros, decisionsPerCall }) => serverMicros * decisionsPerCall)),
  ]);
  const { slope } = lineThrough(points);
  return slope > 0 ? slope : undefined;
}

function memoryMicros({ figures }) {
  const ns = createCells(figures).figure('ns', 'accepted, 1,000,000 keys', 'headgate, await consume');
  return ns === undefined ? undefined : ns / 1_000;
}

/** The line through the points by least squares. */
export function lineThrough(points) {
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x, y] = [mean(points.map(([left]) => left)), mean(points.map(([, right]) => right))];
  const slope =
    points.reduce((sum, [left, right]) => sum + (left - x) * (right - y), 0) /
    points.reduce((sum, [left]) => sum + (left - x) ** 2, 0);
  return { start: y - slope * x, slope };
}
