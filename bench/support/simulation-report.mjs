import { table, whole } from './table.mjs';

const POWERS = { 6: '10⁶', 7: '10⁷', 8: '10⁸', 9: '10⁹' };
const SOURCES = {
  call: 'server’s script, µs a call',
  record: 'and for each record of it',
  beside: 'server beside its script, µs a call',
  gateway: 'gateway CPU, µs a request',
  bytesPerKey: 'bytes a key in Redis',
  memory: 'CPU of a check in one process’s memory, µs',
};

export function simulationReport({ decisions, parameters, values, sources, fleets, variations, prediction }) {
  const { perAccountPerDay, peakFactor, exponent, hotShare, shardUtilisation } = parameters;
  return {
    title: 'A simulation of a million to a billion accounts',
    markdown: `
Virtual time, no measurement: a model of gateways, network and Redis servers, with the service times that the topics above measured put in. Each account makes ${perAccountPerDay} requests a day in
the mean, unlike each other by Zipf’s law with exponent ${exponent}; the figures are of a peak of ${peakFactor} times the mean. One hot account means that ${percent(hotShare)} of all requests are of one account. Shards: the least
number of which the busiest is at most ${percent(shardUtilisation)} busy; one shard is one server, more are a cluster. A slice of at least
${whole(decisions)} decisions of each fleet is simulated.

${table(
  [
    'accounts',
    'decisions a second',
    'gateways',
    'Redis shards',
    'busy: mean',
    'busiest',
    'server, core-seconds a million decisions',
    'memory in all, GB',
    'p50, ms',
    'p99',
    'p99.9',
    'refused',
    'answered by local denials',
  ],
  fleets.map((fleet) => [nameOf(fleet), ...cells(fleet, values)]),
)}

For comparison, a process that decides in its own memory takes ${values.memory.toFixed(2)} core-seconds of a million decisions, and shares nothing.

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
  Object.entries(SOURCES).map(([name, title]) => [title, values[name].toPrecision(3), sources[name]]),
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

function cells({ perSecond, gateways, shards, utilisation, serverMicros, records, latencyMs, refused, local }, values) {
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
  ];
}

function predictionText(prediction) {
  if (prediction === undefined)
    return 'The topic `redis` was not measured as a whole, so the model was held against no measurement.';
  const { concurrency, perSecond, decisionsPerCall, measured } = prediction;
  return `The model against a measurement that it was not given: one process on one server, ${concurrency} checks under way, from what was measured at the other concurrencies.

${table(
  [`spread ${concurrency}`, 'predicted', 'measured', 'predicted to measured'],
  [
    ['decisions a second', whole(perSecond), whole(measured.perSecond), (perSecond / measured.perSecond).toFixed(2)],
    [
      'decisions a call',
      decisionsPerCall.toFixed(1),
      measured.decisionsPerCall.toFixed(1),
      (decisionsPerCall / measured.decisionsPerCall).toFixed(2),
    ],
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
    'A call takes the server a fixed time for itself and for each record, and another for each connection of a turn. No slow commands, no persistence, no replicas, no TLS.',
    `One way on the network takes ${oneWayMedian} µs in the median, log-normal with sigma ${oneWaySigma}; messages of different turns may overtake each other, none is lost, and no deadline strikes.`,
    `What refuses is one window of ${window.max} requests in ${window.micros / 60e6} minute; longer windows would refuse more, which costs little. The time of a decision is that of four windows. A slice is shorter than a window: accounts and gateways begin as they would be found by chance.`,
    `A refusal is remembered by the gateway that heard it for ${denialMicros / 1e6} s at most. Clients don’t stop when they are refused.`,
    `Memory is a record for each account with a request in its longest window of ${longestWindowMicros / 3_600e6} hours, on one route at the day’s mean rate; more routes, so many times more. Redis wants room beside it.`,
  ];
}
