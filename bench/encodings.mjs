// npm run bench:encodings: what a record's encoding, and each other part of the script, costs the server; interleaved, from pipelines. --rounds=15 --write
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { encodingArguments, encodingScript } from './support/encoding-scripts.mjs';
import { pseudoRandomOrder } from './support/order.mjs';
import { installPeers, peerVersion, requirePeer } from './support/peers.mjs';
import { meterScripts, startRedisServer } from './support/redis-server.mjs';
import { median, origin, progress, provenance, save, table, versionOf, writeSection } from './support/report.mjs';

const KEY_COUNT = 10_000;
const PIPELINES = 20;
const RECORDS_IN_A_PIPELINE = 192;
const DURATIONS = [60_000, 86_400_000, 120_000, 172_800_000];
const { values: options } = parseArgs({
  options: { rounds: { type: 'string', default: '15' }, write: { type: 'boolean', default: false } },
});
const rounds = Number(options.rounds);

/** Each line beside the first is the first with one part changed. */
const BASE = 'one string of packed doubles, SET PX';
const VARIANTS = {
  [BASE]: {},
  'one string of decimal text': { read: 'text' },
  'one string of cmsgpack': { read: 'cmsgpack' },
  'hash, a field a number': { read: 'hash, a field a number' },
  'hash, a field a window': { read: 'hash, a field a window' },
  'SET PXAT': { write: 'SET PXAT' },
  'SET PX where the end moved, else SET KEEPTTL': { write: 'SET PX where the end moved, else SET KEEPTTL' },
  'SET PX where the end moved, else SETRANGE': { write: 'SET PX where the end moved, else SETRANGE' },
  'time given rather than TIME': { clock: 'given' },
  'plan in one argument of JSON': { plan: 'one argument of JSON' },
  'plan in one argument of packed doubles': { plan: 'one argument of packed doubles' },
  'reply: a string of decimals': { reply: 'a string of decimals' },
  'reply: a string of packed doubles': { reply: 'a string of packed doubles' },
  '4 records a call': { records: 4 },
  '16 records a call': { records: 16 },
  '64 records a call': { records: 64 },
};

installPeers();
const server = await startRedisServer();
const client = new Redis({ port: server.port, host: '127.0.0.1' });
const { RateLimiterRedis } = requirePeer('rate-limiter-flexible');
const peer = new RateLimiterRedis({ storeClient: client, points: 1e9, duration: 60 });
const FLOOR = 'bare `return 1`';
const PEER = 'rate-limiter-flexible, one window';
const scripts = {
  [FLOOR]: { source: 'return 1', args: () => [] },
  // As it calls its own script.
  [PEER]: { source: peer._incrTtlLuaScript, args: () => ['1', '60', '1000000000', '60'] },
};
for (const [name, parts] of Object.entries(VARIANTS)) {
  scripts[name] = {
    source: encodingScript(parts),
    args: encodingArguments(parts, DURATIONS, 1_000_000_000),
    records: parts.records,
  };
}
const order = pseudoRandomOrder(KEY_COUNT);
let at = 0;

/** Microseconds of the server a record. */
async function measure(name, { sha1, args, records = 1 }) {
  const key = () => `${name}:${order[at++ & (order.length - 1)]}`;
  const spent = await meterScripts(server.admin);
  for (let i = 0; i < PIPELINES; i++) {
    const pipeline = client.pipeline();
    for (let left = RECORDS_IN_A_PIPELINE; left > 0; left -= records) {
      pipeline.evalsha(sha1, records, ...Array.from({ length: records }, key), ...args());
    }
    for (const [error] of await pipeline.exec()) if (error) throw error;
  }
  return (await spent()).micros / (PIPELINES * RECORDS_IN_A_PIPELINE);
}

const figures = Object.fromEntries(Object.keys(scripts).map((name) => [name, []]));
try {
  for (const script of Object.values(scripts)) script.sha1 = await client.script('LOAD', script.source);
  // The first round only fills the records.
  for (let round = 0; round <= rounds; round++) {
    progress(`round ${round} of ${rounds}`);
    const inTurns = Object.entries(scripts);
    for (const [name, script] of round % 2 === 0 ? inTurns : inTurns.toReversed()) {
      const micros = await measure(name, script);
      if (round > 0) figures[name].push(micros);
    }
  }
} finally {
  client.disconnect();
  server.stop();
}

const versions = { redis: server.version, 'rate-limiter-flexible': peerVersion('rate-limiter-flexible') };
const result = { provenance: { ...provenance(), versions }, rounds, figures };
save('encodings', result);
const ratio = (name, base) => median(figures[name].map((value, round) => value / figures[base][round])).toFixed(2);
const report = `## Redis, what the parts of the script cost

Server time of one decision of four windows (start and count of each; TIME, read, evaluate, write, expiry), from \`INFO commandstats\`; median of ${rounds} interleaved rounds with the least
and the most, ${KEY_COUNT.toLocaleString('en')} records in a fixed random order, from pipelines. Each line differs from the third in one part.

${table(
  ['', 'µs a record', 'least–most', 'to the third', `to ${PEER}`],
  Object.entries(figures).map(([name, values]) => [
    name,
    median(values).toFixed(2),
    `${Math.min(...values).toFixed(2)}–${Math.max(...values).toFixed(2)}`,
    ratio(name, BASE),
    ratio(name, PEER),
  ]),
)}

redis ${versions.redis}, ioredis ${versionOf('ioredis')}, rate-limiter-flexible ${versions['rate-limiter-flexible']}. ${origin(result.provenance, 'bench:encodings')}
`;
console.log(`\n${report}`);
if (options.write) writeSection('encodings', report);
