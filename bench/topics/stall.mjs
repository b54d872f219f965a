// Keys expire in memory while traffic goes on: how long is the event loop blocked? headgate and its peers take turns,
// each in a fresh process.
import { bar, createCells } from 'headgate-bench/cells';
import { inFreshProcess } from 'headgate-bench/fresh-process';
import { peerVersions } from 'headgate-bench/peers';
import { inRounds } from 'headgate-bench/rounds';
import { table, whole } from 'headgate-bench/table';
import { atMost, targetRow } from 'headgate-bench/targets';
import { CANDIDATES, PEERS } from '../support/memory-candidates.mjs';

const OURS = 'headgate, consumeSync';
const FLAGS = ['--expose-gc', '--max-old-space-size=8192'];
const WINDOW_SECONDS = 5;
const BLOCKED_MOST_MS = 10;
const AT_ONCE = 'headgate, all at one instant';
/** `limiter` is left out, because it never removes a key. */
const ROWS = {
  headgate: { candidate: OURS },
  [AT_ONCE]: { candidate: OURS, atOnce: true },
  ...Object.fromEntries(
    [
      'rate-limiter-flexible',
      'express-rate-limit',
      'hono-rate-limiter',
      '@fastify/rate-limit',
      '@nestjs/throttler',
    ].map((candidate) => [candidate, { candidate }]),
  ),
};
const HOW = {
  headgate: 'a few with every check',
  [AT_ONCE]: 'a few with every check; its clock is moved forward',
  'rate-limiter-flexible': 'one timer per key',
  'express-rate-limit': 'a whole Map, after two windows',
  'hono-rate-limiter': 'a whole Map, after two windows',
  '@fastify/rate-limit': 'when a new key takes the place',
  '@nestjs/throttler': 'every sweep visits all keys (here once per window, by default every minute)',
};

export async function measure({ quick, progress, rounds = quick ? 1 : 3 }) {
  const keyCount = quick ? 100_000 : 1_000_000;
  const seconds = quick ? 1 : WINDOW_SECONDS;
  const workload = {
    name: `${whole(keyCount)} keys`,
    contestants: Object.entries(ROWS).map(([name, row]) => ({ name, ...row })),
  };
  const run = ({ name, candidate, atOnce }, _, isWarmUp) => {
    // Every run is a fresh process, so there is nothing to warm up.
    if (isWarmUp) return undefined;
    progress(`${workload.name} expire in ${name}`);
    const args = [candidate, keyCount, seconds, ...(atOnce ? ['at once'] : [])];
    return inFreshProcess(new URL('../support/stall-worker.mjs', import.meta.url), args, FLAGS);
  };
  const figures = await inRounds({ rounds, workloads: [workload], progress, measure: run });
  return { versions: peerVersions(PEERS), rounds, keyCount, figures };
}

export function report({ rounds, keyCount, figures }) {
  const [workload] = Object.keys(figures);
  const cells = createCells(flattened(figures));
  const show = ({ median, least, most }) => `${median.toFixed(1)} (${least.toFixed(1)}–${most.toFixed(1)})`;
  const rows = Object.keys(ROWS).map((name) => [
    name.startsWith('headgate') ? `**${name}**` : name,
    CANDIDATES[ROWS[name].candidate].windows,
    ...['before', 'blocked', 'delay'].map((field) => show(cells.spread(field, workload, name))),
    HOW[name],
  ]);
  return {
    title: 'Keys that expire',
    markdown: `
${whole(keyCount)} keys expire within seconds, in the order in which they came, while checks go on: 200 per turn of the
event loop. Then as many new keys arrive. Median of ${rounds} ${rounds === 1 ? 'run' : 'runs'} (least–most) in ms, each
in a fresh process.

- *Blocked* is the longest time that the process itself worked between two turns, but at most the delay of the loop.
- *Delay* is the longest time by which the event loop was late. It also grows with other work on the machine.

\`limiter\` has no row, because it never removes a key.

${table(
  [
    '',
    'windows',
    'blocked before',
    'blocked while keys expire',
    'delay while keys expire',
    'how expired keys are removed',
  ],
  rows,
)}`,
    targets: ['headgate', AT_ONCE].flatMap((name) =>
      targetRow(
        `${name}: ms blocked while ${whole(keyCount)} keys expire`,
        cells.spread('blocked', workload, name),
        atMost(BLOCKED_MOST_MS),
        show,
      ),
    ),
    chart: {
      title: `${whole(keyCount)} keys expire: the longest time that the event loop is blocked`,
      unit: 'milliseconds',
      scale: 'log',
      better: 'less',
      panels: [
        {
          title: '',
          bars: Object.keys(ROWS).flatMap((name) =>
            bar(name, name.startsWith('headgate') ? 'ours' : 'peer', cells.spread('blocked', workload, name)),
          ),
        },
      ],
    },
  };
}

/** `heldMs` is the name that bench/results has for the time blocked. */
function flattened(figures) {
  const flat = ({ before, meanwhile }) => ({
    before: before.heldMs,
    blocked: meanwhile.heldMs,
    delay: meanwhile.delayMs,
  });
  return Object.fromEntries(
    Object.entries(figures).map(([workload, row]) => [
      workload,
      Object.fromEntries(Object.entries(row).map(([name, runs]) => [name, runs.map(flat)])),
    ]),
  );
}
