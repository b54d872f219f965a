import { table, whole } from './table.mjs';

const POWERS = { 6: '10⁶', 7: '10⁷', 8: '10⁸', 9: '10⁹' };
const SOURCES = {
  serverCall: 'one server, µs of CPU a call',
  clusterCall: 'a server of a cluster, µs of CPU a call',
  record: 'and for each record of it',
  serverGateway: 'gateway on one server, µs of CPU a request',
  clusterGateway: 'gateway on a cluster, µs of CPU a request',
  bytesPerKey: 'bytes a key in Redis',
  memory: 'CPU of a check in one process’s memory, µs',
};

export function simulationReport({ decisions, parameters, values, sources, fleets, variations, prediction }) {
  const { perAccountPerDay, peakFactor, exponent, hotShare, shardUtilisation } = parameters;
  return {
    title: 'A simulation of a million to a billion accounts',
    markdown: `
Virtual time, no measurement: a model of gateways, network and Redis servers, with the service times that the topics above measured put in. Each account makes ${perAccountPerDay} requests a day in
the mean, unlike each other by Zipf’s law with exponent ${exponent}; the figures are of a peak of ${peakFactor} times the mean. One hot account means that ${percent(hotShare)} of all requests are of one account. Shards: so
many, found in steps, that the busiest is at most ${percent(shardUtilisation)} busy, unless one account alone is too much for any; one shard is one server, more are a cluster. Of each fleet a slice of at least
${whole(decisions)} decisions is simulated, as long as the last column says.

${table(
  [
    'accounts',
    'decisions a second',
    'gateways',
    'Redis shards',
    'busy: mean',
    'busiest',
    'server, core-seconds a million decisions',
    'Redis records, GB',
    'p50, ms',
    'p99',
    'p99.9',
    'refused',
    'answered by local denials',
    'slice, s',
  ],
  fleets.map((fleet) => [nameOf(fleet), ...cells(fleet, values)]),
)}

The column of the server is its CPU alone; that of the gateways comes on top.${memoryText(values)}

What else could be so, at ${powerOf(variations[0].accounts)} accounts:

${table(
  ['', 'Redis shards', 'busiest', 'core-seconds a million', 'p50, ms', 'p99', 'p99.9', 'refused', 'local denials'],
  variations.map(({ name, shards, utilisation, serverMicros, latencyMs, refused, local }) => [
    name,
    shards,
    percent(utilisation.most),
    serverMicros.toFixed(1),
    ...tail(latencyMs),
    percent(refused),
    percent(local),
  ]),
)}

${predictionText(prediction)}

Put in, and where it is from:

${table(
  ['', 'value', 'from'],
  Object.entries(SOURCES)
    .filter(([name]) => values[name] !== undefined)
    .map(([name, title]) => [title, values[name].toPrecision(3), sources[name]]),
)}

Assumed:

${assumptions(parameters)
  .map((line) => `- ${line}`)
  .join('\n')}`,
    chart: {
      title: 'Simulated latency of a decision, from its request’s arrival at a gateway',
      unit: 'milliseconds',
      scale: 'linear',
      better: 'less',
      panels: fleets.map((fleet) => ({
        title: panelTitle(fleet),
        bars: [
          ['p50', 'p50'],
          ['p99', 'p99'],
          ['p99.9', 'p999'],
        ].map(([label, field]) => ({ label, value: fleet.latencyMs[field], kind: 'ours' })),
      })),
    },
  };
}

const powerOf = (accounts) => POWERS[Math.log10(accounts)];
const isHot = (hotShare) => (hotShare > 0 ? ', one hot' : '');
const nameOf = ({ accounts, hotShare }) => `${powerOf(accounts)}${isHot(hotShare)}`;
const panelTitle = ({ accounts, hotShare, gateways, shards }) =>
  `${powerOf(accounts)} accounts${isHot(hotShare)}: ${whole(gateways)} gateways, ${shards === 1 ? '1 server' : `${shards} shards`}`;
const percent = (share) => `${Number((share * 100).toPrecision(2))} %`;
const tail = ({ p50, p99, p999 }) => [p50, p99, p999].map((ms) => ms.toFixed(2));

function cells(fleet, values) {
  const { perSecond, gateways, shards, utilisation, serverMicros, records, latencyMs, refused, local } = fleet;
  return [
    whole(perSecond),
    whole(gateways),
    whole(shards),
    percent(utilisation.mean),
    percent(utilisation.most),
    // Microseconds a decision are as many core-seconds a million.
    serverMicros.toFixed(1),
    ((records * values.bytesPerKey) / 1e9).toFixed(1),
    ...tail(latencyMs),
    percent(refused),
    percent(local),
    fleet.sliceSeconds.toPrecision(2),
  ];
}

function memoryText({ memory }) {
  if (memory === undefined) return '';
  return ` For comparison, a process that decides in its own memory takes ${memory.toFixed(2)} core-seconds of a million decisions, all of
it the process’s, and shares nothing.`;
}

function predictionText(prediction) {
  if (prediction === undefined)
    return 'The topics `redis` and `scale-out` were not measured as a whole, so the model was held against no measurement.';
  const { concurrency, measured, scaleOut } = prediction;
  const row = (title, field, show) => [
    title,
    show(prediction[field]),
    ...[measured, scaleOut].flatMap((found) =>
      found === undefined ? ['', ''] : [show(found[field]), (prediction[field] / found[field]).toFixed(2)],
    ),
  ];
  return `The model against a measurement: one process with the limiter alone on one server, ${concurrency} checks under way. It was given what the topic redis measured at the other concurrencies: the
script’s time by the server’s clock, the process’s CPU, the round trip. From the topic scale-out it was given what a call costs the server beside its script: CPU less time by that clock, which are
alike only where the server hardly waits for a core. That one figure is of this very load; nothing else of it was given. Two topics measured it, each in its own minutes.

${table(
  ['', 'predicted', 'measured by redis', 'predicted to that', 'by scale-out', 'predicted to that'],
  [
    row('decisions a second', 'perSecond', whole),
    row('decisions a call', 'decisionsPerCall', (value) => value.toFixed(1)),
  ],
)}`;
}

function assumptions(parameters) {
  const { window, longestWindowMicros, denialMicros, oneWayMedian, oneWaySigma, gatewayUtilisation, burst } =
    parameters;
  return [
    `Requests come ${burst === 1 ? 'independently of each other (Poisson)' : `in bursts of ${burst} in the mean`}, each to any gateway with the same chance; peaks of seconds are not in it. An account’s place on a shard is a hash’s.`,
    `Gateways are as many as make each ${percent(gatewayUtilisation)} busy; a request takes half of its CPU before the decision and half after. Gateways and servers work in turns of an event loop, each on a core of its own.`,
    'What a turn of a gateway sends goes as the Redis store sends it: on one server in up to four calls of 4 to 32 records, on a cluster a call for each account; requests of one account and turn as a number.',
    'A call keeps a server for as long as its CPU: a fixed time, and another for each record. Together they are all that a call of `headgate serve` cost the server in the topic scale-out; a record is what one more in a call of the limiter alone cost it there. No slow commands, no persistence, no replicas, no TLS.',
    'There a busy gateway asked servers that had little else to do. A busier server wakes up less often, so a call costs it rather less than is put in; a gateway with more time on its hands has less to send together, so a request costs it rather more.',
    `One way on the network takes ${oneWayMedian} µs in the median, log-normal with sigma ${oneWaySigma}; messages of different turns may overtake each other, none is lost, and no deadline strikes.`,
    `What refuses is one window of ${window.max} requests in ${window.micros / 60e6} minute; longer windows would refuse more, which costs little. The time of a decision is that of four windows. A slice is shorter than a window: accounts and gateways begin as they would be found by chance. With one hot account it is, in a whole run on a cluster, no shorter than the memory of refusals, which gateways hear and forget together.`,
    `A refusal is remembered by the gateway that heard it for ${denialMicros / 1e6} s at most. Clients don’t stop when they are refused.`,
    `Redis records: one for each account with a request in its longest window of ${longestWindowMicros / 3_600e6} hours, on one route at the day’s mean rate; more routes, so many times more. Redis wants room beside it.`,
  ];
}
