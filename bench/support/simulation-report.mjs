import { table, whole } from 'headgate-bench/table';

const POWERS = { 6: '10⁶', 7: '10⁷', 8: '10⁸', 9: '10⁹' };
const INPUTS = {
  serverCall: 'one server, µs of CPU per call',
  clusterCall: 'a server of a cluster, µs of CPU per call',
  record: 'each record of a call, µs of CPU',
  serverGateway: 'gateway on one server, µs of CPU per request',
  clusterGateway: 'gateway on a cluster, µs of CPU per request',
  bytesPerKey: 'bytes per key in Redis',
  memory: 'a check in one process’s memory, µs of CPU',
};
/** Titles of those variations whose name in bench/results does not explain itself. */
const VARIATIONS = {
  'accounts more unlike: exponent 1': 'accounts differ more: exponent 1',
  'a slower network: five times the way': 'a slower network: five times the delay',
  'no memory of denials': 'one hot account, gateways remember no rejections',
  'with that memory, for comparison': 'one hot account, gateways remember rejections',
};

export function simulationReport({ decisions, parameters, values, sources, fleets, variations, prediction }) {
  const { perAccountPerDay, peakFactor, exponent, hotShare, shardUtilisation } = parameters;
  return {
    title: 'A simulation of a million to a billion accounts',
    markdown: `
Virtual time, not a measurement: a model of gateways, network and Redis servers that uses the service times measured by
the topics above.

- On average an account makes ${perAccountPerDay} requests per day. Accounts differ by Zipf’s law with exponent
  ${exponent}. The figures describe a peak of ${peakFactor} times the average rate.
- *One hot* means that ${percent(hotShare)} of all requests come from one account.
- The number of Redis shards is found in steps, so that the busiest shard is at most ${percent(shardUtilisation)} busy,
  unless one account alone is too much for any shard. One shard is one server; more shards are a cluster.
- Of each fleet, a slice of at least ${whole(decisions)} decisions is simulated. The last column is its length.

${table(
  [
    'accounts',
    'decisions per second',
    'gateways',
    'Redis shards',
    'mean busy',
    'busiest',
    'server, core-seconds per million decisions',
    'Redis records, GB',
    'p50, ms',
    'p99',
    'p99.9',
    'rejected',
    'rejected locally',
    'slice, s',
  ],
  fleets.map((fleet) => [nameOf(fleet), ...cells(fleet, values)]),
)}

The server column is the CPU of the Redis servers alone. The CPU of the gateways comes on top.${memoryText(values)}

Variations, at ${powerOf(variations[0].accounts)} accounts:

${table(
  [
    '',
    'Redis shards',
    'busiest',
    'core-seconds per million',
    'p50, ms',
    'p99',
    'p99.9',
    'rejected',
    'rejected locally',
  ],
  variations.map(({ name, shards, utilisation, serverMicros, latencyMs, refused, local }) => [
    VARIATIONS[name] ?? name,
    shards,
    percent(utilisation.most),
    serverMicros.toFixed(1),
    ...latencies(latencyMs),
    percent(refused),
    percent(local),
  ]),
)}

${predictionText(prediction)}

Inputs of the model, and their sources:

${table(
  ['', 'value', 'from'],
  Object.entries(INPUTS)
    .filter(([name]) => values[name] !== undefined)
    .map(([name, title]) => [title, values[name].toPrecision(3), sources[name]]),
)}

Assumptions:

${assumptions(parameters)}`,
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
const hotSuffix = (hotShare) => (hotShare > 0 ? ', one hot' : '');
const nameOf = ({ accounts, hotShare }) => `${powerOf(accounts)}${hotSuffix(hotShare)}`;
const panelTitle = ({ accounts, hotShare, gateways, shards }) =>
  `${powerOf(accounts)} accounts${hotSuffix(hotShare)}: ${whole(gateways)} gateways, ${shards === 1 ? '1 server' : `${shards} shards`}`;
const percent = (share) => `${Number((share * 100).toPrecision(2))} %`;
const latencies = ({ p50, p99, p999 }) => [p50, p99, p999].map((ms) => ms.toFixed(2));

function cells(fleet, values) {
  const { perSecond, gateways, shards, utilisation, serverMicros, records, latencyMs, refused, local } = fleet;
  return [
    whole(perSecond),
    whole(gateways),
    whole(shards),
    percent(utilisation.mean),
    percent(utilisation.most),
    // Microseconds per decision are core-seconds per million decisions.
    serverMicros.toFixed(1),
    ((records * values.bytesPerKey) / 1e9).toFixed(1),
    ...latencies(latencyMs),
    percent(refused),
    percent(local),
    fleet.sliceSeconds.toPrecision(2),
  ];
}

function memoryText({ memory }) {
  if (memory === undefined) return '';
  return `
For comparison, a process that decides in its own memory takes ${memory.toFixed(2)} core-seconds per million decisions,
all of it the process’s own CPU, and shares no counters.`;
}

function predictionText(prediction) {
  if (prediction === undefined)
    return 'The topics `redis` and `scale-out` were not measured completely, so the model is not compared with a measurement.';
  const { concurrency, measured, scaleOut } = prediction;
  const row = (title, field, show) => [
    title,
    show(prediction[field]),
    ...[measured, scaleOut].flatMap((figures) =>
      figures === undefined ? ['', ''] : [show(figures[field]), (prediction[field] / figures[field]).toFixed(2)],
    ),
  ];
  return `The model compared with a measurement: one process with the limiter alone on one server, ${concurrency} checks in flight.

- From the topic redis the model has what was measured at the other concurrencies: the script’s time by the server’s
  clock, the process’s CPU, the round trip.
- From the topic scale-out it has what a call costs the server outside its script: CPU minus the script’s time. The two
  are comparable only if the server hardly waits for a core. This one figure comes from the predicted load itself;
  nothing else does.
- Two topics measured the load, at different times.

${table(
  ['', 'predicted', 'measured by redis', 'predicted ÷ redis', 'measured by scale-out', 'predicted ÷ scale-out'],
  [
    row('decisions per second', 'perSecond', whole),
    row('decisions per call', 'decisionsPerCall', (value) => value.toFixed(1)),
  ],
)}`;
}

function assumptions({
  window,
  longestWindowMicros,
  denialMicros,
  oneWayMedian,
  oneWaySigma,
  gatewayUtilisation,
  burst,
}) {
  const arrival = burst === 1 ? 'independently of each other (Poisson)' : `in bursts of ${burst} on average`;
  return `
- Requests arrive ${arrival}, each at a random gateway. Peaks of a few seconds are left out.
  A hash decides which shard has an account.
- There are as many gateways as keep each ${percent(gatewayUtilisation)} busy. A request takes half of its CPU before
  the decision and half after it.
- Gateways and servers work in turns of an event loop, each on a core of its own.
- A gateway sends the checks of one turn as the Redis store does. On one server, a call has a quarter of the turn’s
  records, but at least 4 and at most 32. On a cluster, a call has one account. The requests of one account in one turn
  are one record with a count.
- A call keeps a server busy for its CPU time: a fixed part, and a part per record. Together they are the whole CPU that
  a call of \`headgate serve\` cost the server in the topic scale-out. The part per record is what one more record cost
  in a call of the limiter alone.
- In that topic a busy gateway called servers that had little else to do. A busier server wakes up less often, so a call
  costs it somewhat less than the model says. A less busy gateway has fewer requests to send together, so a request
  costs it somewhat more.
- Slow commands, persistence, replicas and TLS are left out.
- One way on the network takes ${oneWayMedian} µs in the median, log-normal with sigma ${oneWaySigma}. Messages of
  different turns may overtake each other. No message is lost, and no deadline passes.
- Only one window can reject: ${window.max} requests in ${window.micros / 60e6} minute. Longer windows would reject
  more, which costs little. The time of a decision is that of four windows.
- A slice is shorter than a window, so accounts and gateways start in a random state of normal operation. With one hot
  account, in a full run on a cluster, a slice is at least as long as gateways remember a rejection, because they learn
  of the hot account’s rejection together and forget it together.
- A gateway remembers a rejection that it received for at most ${denialMicros / 1e6} s. Clients do not stop when they
  are rejected.
- Redis has one record per account with a request in its longest window of ${longestWindowMicros / 3_600e6} hours, on
  one route at the mean rate of the day. With more routes there are as many times more records. Redis also needs memory
  beyond its records.`.trim();
}
