// What a record's encoding and the other parts of the script cost the server. The scripts take turns, sent in
// pipelines.

import { bar, createCells } from 'headgate-bench/cells';
import { pseudoRandomOrder } from 'headgate-bench/order';
import { peerVersions, requirePeer } from 'headgate-bench/peers';
import { versionOf } from 'headgate-bench/provenance';
import { meterScripts, startRedisServer } from 'headgate-bench/redis-server';
import { inRounds } from 'headgate-bench/rounds';
import { table } from 'headgate-bench/table';
import { Redis } from 'ioredis';
import { encodingArguments, encodingScript } from '../support/encoding-scripts.mjs';

const KEY_COUNT = 10_000;
/** The warm-up writes all records, so that every measured call finds one. */
const ALL = Array.from({ length: KEY_COUNT }, (_, i) => i);
const PIPELINES = 20;
const RECORDS_IN_A_PIPELINE = 192;
const DURATIONS = [60_000, 86_400_000, 120_000, 172_800_000];
const FLOOR = 'bare `return 1`';
const PEER = 'rate-limiter-flexible, one window';

/**
 * Each variant after the first is the first with one part changed. The keys are the names in bench/results; `title` is
 * what the page says instead. `isOurs`: headgate's own script has this part in this form.
 */
const BASE = 'one string of packed doubles, SET PX';
const VARIANTS = {
  [BASE]: {},
  'one string of decimal text': { read: 'text' },
  'one string of cmsgpack': { read: 'cmsgpack' },
  'hash, a field a number': { read: 'hash, one field per number', title: 'hash, one field per number' },
  'hash, a field a window': { read: 'hash, one field per window', title: 'hash, one field per window' },
  'SET PXAT': { write: 'SET PXAT' },
  'SET PX where the end moved, else SET KEEPTTL': {
    write: 'SET PX or SET KEEPTTL',
    title: 'SET PX if the end moved, else SET KEEPTTL',
  },
  'SET PX where the end moved, else SETRANGE': {
    write: 'SET PX or SETRANGE',
    title: 'SET PX if the end moved, else SETRANGE',
    isOurs: true,
  },
  'time given rather than TIME': { clock: 'argument', title: 'time as an argument, no TIME' },
  'plan in one argument of JSON': { plan: 'one argument of JSON', isOurs: true },
  'plan in one argument of packed doubles': { plan: 'one argument of packed doubles' },
  'reply: a string of decimals': { reply: 'a string of decimals' },
  'reply: a string of packed doubles': { reply: 'a string of packed doubles', isOurs: true },
  '4 records a call': { records: 4, title: '4 records per call', isOurs: true },
  '16 records a call': { records: 16, title: '16 records per call', isOurs: true },
  '64 records a call': { records: 64, title: '64 records per call' },
};

/** All scripts: `{ name, source, args(), records }`. */
function scripts(client) {
  const { RateLimiterRedis } = requirePeer('rate-limiter-flexible');
  const peer = new RateLimiterRedis({ storeClient: client, points: 1e9, duration: 60 });
  return [
    { name: FLOOR, source: 'return 1', args: () => [] },
    // The arguments with which the package calls its own script.
    { name: PEER, source: peer._incrTtlLuaScript, args: () => ['1', '60', '1000000000', '60'] },
    ...Object.entries(VARIANTS).map(([name, parts]) => ({
      name,
      source: encodingScript(parts),
      args: encodingArguments(parts, DURATIONS, 1_000_000_000),
      records: parts.records,
    })),
  ];
}

export async function measure({ quick, progress, rounds = quick ? 3 : 15 }) {
  const server = await startRedisServer();
  const client = new Redis({ port: server.port, host: '127.0.0.1' });
  try {
    const contestants = scripts(client);
    for (const script of contestants) script.sha1 = await client.script('LOAD', script.source);
    const order = pseudoRandomOrder(KEY_COUNT);
    const figures = await inRounds({
      rounds,
      workloads: [{ name: 'scripts', contestants }],
      progress,
      measure: (script, _, isWarmUp) => run(server, client, isWarmUp ? ALL : nextOf(order), script),
    });
    const versions = {
      redis: server.version,
      ioredis: versionOf('ioredis'),
      ...peerVersions(['rate-limiter-flexible']),
    };
    return { versions, rounds, keyCount: KEY_COUNT, figures };
  } finally {
    client.disconnect();
    server.stop();
  }
}

let at = 0;
const nextOf = (order) =>
  Array.from({ length: PIPELINES * RECORDS_IN_A_PIPELINE }, () => order[at++ & (order.length - 1)]);

/** Server time per record, in microseconds. */
async function run({ admin }, client, places, { name, sha1, args, records = 1 }) {
  const keys = places.map((place) => `${name}:${place}`);
  const spent = await meterScripts(admin);
  for (const inPipeline of cut(keys, RECORDS_IN_A_PIPELINE)) {
    const pipeline = client.pipeline();
    for (const call of cut(inPipeline, records)) pipeline.evalsha(sha1, call.length, ...call, ...args());
    for (const [error] of await pipeline.exec()) if (error) throw error;
  }
  return { micros: (await spent()).micros / keys.length };
}

const cut = (list, size) =>
  Array.from({ length: Math.ceil(list.length / size) }, (_, i) => list.slice(i * size, (i + 1) * size));

export function report({ rounds, keyCount, figures }) {
  const cells = createCells(figures);
  const names = Object.keys(figures.scripts);
  const spread = (name) => cells.spread('micros', 'scripts', name);
  const ratio = (name, base) => cells.ratio('micros', ['scripts', name], base).median.toFixed(2);
  const titleOf = (name) => VARIANTS[name]?.title ?? name;
  const isOurs = (name) => VARIANTS[name]?.isOurs === true;
  const kind = (name) => (name === FLOOR ? 'floor' : isOurs(name) ? 'ours' : 'peer');
  return {
    title: 'Redis, what the parts of the script cost',
    markdown: `
Server time of one decision on four windows (start and count of each; TIME, read, evaluate, write, expiry), from
\`INFO commandstats\`. Median of ${rounds} interleaved rounds; ${keyCount.toLocaleString('en')} records in a fixed
random order, sent in pipelines. Every record exists before the first round.

From the fourth row on, each row differs from the third in one part. A part is bold if headgate’s own script has it in
that form. No row is that whole script.

${table(
  ['', 'µs per record', 'least–most', 'relative to the third row', `relative to ${PEER}`],
  names.map((name) => {
    const { median, least, most } = spread(name);
    const title = isOurs(name) ? `**${titleOf(name)}**` : titleOf(name);
    return [title, median.toFixed(2), `${least.toFixed(2)}–${most.toFixed(2)}`, ratio(name, BASE), ratio(name, PEER)];
  }),
)}`,
    chart: {
      title: 'Server time of one decision, by the parts of the script',
      unit: 'µs per record',
      better: 'less',
      panels: [
        { title: '', bars: names.flatMap((name) => bar(titleOf(name).replaceAll('`', ''), kind(name), spread(name))) },
      ],
    },
  };
}
