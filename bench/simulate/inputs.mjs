import { createCells } from '../support/cells.mjs';
import { median } from '../support/statistics.mjs';

/** Microseconds of CPU and bytes, as an earlier run measured them on a machine of 2 cores; they hold where scale-out was not measured. */
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
/** Process. */
const ONE = '1';

/**
 * What the other topics measured, as a simulation needs it.
 * @param load `(topic) => result`, undefined where there is none
 * @returns
 *   `values`: in microseconds of CPU `serverCall` and `clusterCall`, what a call of a gateway takes one server and a server of a cluster, and `record`,
 *   what each record of it takes beside; `serverGateway` and `clusterGateway`, of a request in a gateway; `memory`, of a check in memory, undefined
 *   where it was not measured; and `bytesPerKey`;
 *   `sources`: for each where it comes from; `points`: what was measured on one Redis, by concurrency;
 *   `limiter`: `{ inFlight, perSecond, decisionsPerCall, beside }` of the limiter alone, one process on one Redis; `beside` is what a call costs the server
 *   beside its script: CPU less time by the server's clock, which are alike only where it hardly waits for a core, as there
 */
export function readInputs(load) {
  const [redis, scaleOut, memory] = ['redis', 'scale-out', 'memory'].map(load);
  const found = { ...(scaleOut && ofScaleOut(scaleOut)), memory: memory && memoryMicros(memory) };
  const isMeasured = (name) => found[name] > 0;
  const names = [...Object.keys(DEFAULTS), 'memory'];
  const each = (of) => Object.fromEntries(names.map((name) => [name, of(name)]));
  const values = each((name) => (isMeasured(name) ? found[name] : DEFAULTS[name]));
  const from = (name) => (name === 'memory' ? sourceOf('memory', memory) : sourceOf('scale-out', scaleOut));
  const sources = each((name) => (isMeasured(name) ? from(name) : 'default'));
  return { values, sources, points: redis ? pointsOf(redis) : [], limiter: scaleOut && limiterOf(scaleOut) };
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

function limiterOf({ figures, inFlight }) {
  const rounds = figures[LIMITER]?.[ONE];
  if (rounds === undefined) return undefined;
  const middle = (of) => median(rounds.map(of));
  return {
    inFlight: inFlight.limiter,
    perSecond: middle(({ perSecond }) => perSecond),
    decisionsPerCall: middle(({ decisionsPerCall }) => decisionsPerCall),
    beside: middle((round) => (round.serverMicros - round.scriptMicros) * round.decisionsPerCall),
  };
}

/** Of CPU alone. A call of `headgate serve`, one process, takes the server what it takes in all, less its records. */
function ofScaleOut({ figures, bytesPerKey }) {
  const record = recordOf(figures[LIMITER] ?? {});
  const gatewayOn = (store, of) => {
    const rounds = figures[`gateway, ${store}`]?.[ONE];
    return rounds && median(rounds.map(of));
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

/** With more processes more is under way, and a call has more records: how much more it then takes, where there are figures enough to tell. */
function recordOf(counts) {
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

/** Least squares. */
export function lineThrough(points) {
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x, y] = [mean(points.map(([left]) => left)), mean(points.map(([, right]) => right))];
  const slope =
    points.reduce((sum, [left, right]) => sum + (left - x) * (right - y), 0) /
    points.reduce((sum, [left]) => sum + (left - x) ** 2, 0);
  return { start: y - slope * x, slope };
}
