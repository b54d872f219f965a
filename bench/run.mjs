// npm run bench: the memory store beside its floors, in fresh processes, interleaved; a table, JSON, and with --write docs/benchmarks.md.
import { inFreshProcess, median, origin, progress, provenance, save, table, writeSection } from './support/report.mjs';

const EXPIRY_RUNS = 5;
const KEY_COUNTS = [1, 1_000, 100_000, 1_000_000];
const target = (value, most) => `${value.toFixed(2)} ${value <= most ? '✓' : `✗ (${most})`}`;

const result = { provenance: provenance(), speed: [], footprint: [], expiry: [] };
for (const keyCount of KEY_COUNTS) {
  progress(`speed at ${keyCount.toLocaleString('en')} keys`);
  result.speed.push(inFreshProcess('speed.mjs', [keyCount], ['--max-old-space-size=8192']));
}
for (const keyCount of [100_000, 1_000_000]) {
  progress(`memory at ${keyCount.toLocaleString('en')} keys`);
  result.footprint.push(inFreshProcess('footprint.mjs', [keyCount], ['--expose-gc', '--max-old-space-size=8192']));
}
// A longest delay only ever suffers from what else the machine does: the median of several runs is nearer to our own.
for (let run = 1; run <= EXPIRY_RUNS; run++) {
  progress(`1,000,000 keys run out, ${run} of ${EXPIRY_RUNS}`);
  result.expiry.push(inFreshProcess('expiry.mjs', [1_000_000], ['--expose-gc', '--max-old-space-size=8192']));
}
save('memory', result);

const ns = (row, name) => row.nanoseconds[name].median.toFixed(0);
const { swept } = result.expiry[0];
const longest = (part, figure) => median(result.expiry.map((run) => run[part][figure]));
const report = `## Memory store, four windows

Nanoseconds a call (median of 15 interleaved rounds) and the ratio to the floor in the same round. The floor is a bare \`Map\` whose record has four windows: get, compare, add,
with the same clock; no decision, no bound, no sweep. Target: at most 1.5.

${table(
  ['keys', 'floor, sync', 'consumeSync', 'ratio', 'floor, awaited', 'await consume', 'ratio'],
  result.speed.map((row) => [
    row.keyCount.toLocaleString('en'),
    ns(row, 'floor, sync'),
    ns(row, 'consumeSync'),
    target(row.syncRatio, 1.5),
    ns(row, 'floor, awaited'),
    ns(row, 'await consume'),
    target(row.awaitedRatio, 1.5),
  ]),
)}

Bytes a key beyond the key string, whole process after a full collection. Target: at most 150 at 1,000,000.

${table(
  ['keys', 'bytes a key'],
  result.footprint.map((row) => [row.keyCount.toLocaleString('en'), target(row.bytesPerKey, 150)]),
)}

1,000,000 keys run out at once while 200 new ones come in each turn; median of ${EXPIRY_RUNS} runs. Target: no event-loop delay over 10 ms.

${table(
  ['', 'longest turn, ms', 'event-loop delay, ms'],
  [
    ['traffic on live keys', longest('live', 'longestTurnMs').toFixed(2), longest('live', 'loopDelayMs').toFixed(2)],
    [
      `while ${swept.toLocaleString('en')} leave`,
      target(longest('expiring', 'longestTurnMs'), 10),
      target(longest('expiring', 'loopDelayMs'), 10),
    ],
  ],
)}

${origin(result.provenance, 'bench')}
`;
console.log(`\n${report}`);

if (process.argv.includes('--write')) writeSection('memory', report);
