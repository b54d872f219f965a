// Keys run out in memory while traffic goes on: how long is the event loop held? headgate and its peers, a fresh process for each, in turns.
import { bar, createCells } from '../support/cells.mjs';
import { inFreshProcess } from '../support/fresh-process.mjs';
import { CANDIDATES, PEERS } from '../support/memory-candidates.mjs';
import { peerVersions } from '../support/peers.mjs';
import { inRounds } from '../support/rounds.mjs';
import { verdict } from '../support/statistics.mjs';
import { table, whole } from '../support/table.mjs';

const OURS = 'headgate, consumeSync';
const FLAGS = ['--expose-gc', '--max-old-space-size=8192'];
const WINDOW_SECONDS = 5;
const HELD_MOST_MS = 10;
const AT_ONCE = 'headgate, all at one instant';
/** `limiter` has no part in it: there nothing leaves. */
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
  [AT_ONCE]: 'as above; its clock is set forward',
  'rate-limiter-flexible': 'a timer for each key',
  'express-rate-limit': 'a whole Map, after two windows',
  'hono-rate-limiter': 'a whole Map, after two windows',
  '@fastify/rate-limit': 'when a newcomer takes the place',
  '@nestjs/throttler': 'all looked through at every sweep (here once in a window, by itself every minute)',
};

export async function measure({ quick, progress, rounds = quick ? 1 : 3 }) {
  const keyCount = quick ? 100_000 : 1_000_000;
  const seconds = quick ? 1 : WINDOW_SECONDS;
  const workload = {
    name: `${whole(keyCount)} keys`,
    contestants: Object.entries(ROWS).map(([name, row]) => ({ name, ...row })),
  };
  const run = ({ name, candidate, atOnce }, _, isWarmUp) => {
    // Each is a fresh process: there is nothing to warm up.
    if (isWarmUp) return undefined;
    progress(`${workload.name} run out in ${name}`);
    const args = [candidate, keyCount, seconds, ...(atOnce ? ['at once'] : [])];
    return inFreshProcess('support/stall-worker.mjs', args, FLAGS);
  };
  const figures = await inRounds({ rounds, workloads: [workload], progress, measure: run });
  return { versions: peerVersions(PEERS), rounds, keyCount, figures };
}

export function report({ rounds, keyCount, figures }) {
  const [workload] = Object.keys(figures);
  const cells = createCells(flattened(figures));
  const show = (field, name) => {
    const { median, least, most } = cells.spread(field, workload, name);
    return `${median.toFixed(1)} (${least.toFixed(1)}–${most.toFixed(1)})`;
  };
  const rows = Object.keys(ROWS).map((name) => [
    name.startsWith('headgate') ? `**${name}**` : name,
    CANDIDATES[ROWS[name].candidate].windows,
    show('before', name),
    show('held', name),
    show('delay', name),
    HOW[name],
  ]);
  return {
    title: 'Keys that run out',
    markdown: `
${whole(keyCount)} keys run out as they came, within seconds, while checks go on, 200 in a turn of the event loop; then as many newcomers come. Held: the longest that the process itself worked
between two turns, and no longer than the loop was late, in ms. Delay: the longest that the loop was late, which also suffers from whatever else the machine does. Median of ${rounds} ${rounds === 1 ? 'run' : 'runs'} with the least and the most, a fresh process for
each. \`limiter\` has no row: there nothing leaves.

${table(['', 'windows', 'held before', 'held while keys leave', 'delay while keys leave', 'how keys leave'], rows)}`,
    targets: ['headgate', AT_ONCE].map((name) => ({
      what: `${name}: held while ${whole(keyCount)} keys leave, ms`,
      measured: show('held', name),
      wanted: `≤ ${HELD_MOST_MS}`,
      ...verdict(cells.spread('held', workload, name), (ms) => ms <= HELD_MOST_MS),
    })),
    chart: {
      title: `${whole(keyCount)} keys run out: the longest that the event loop is held`,
      unit: 'milliseconds',
      scale: 'log',
      better: 'less',
      panels: [
        {
          title: '',
          bars: Object.keys(ROWS).flatMap((name) =>
            bar(name, name.startsWith('headgate') ? 'ours' : 'peer', cells.spread('held', workload, name)),
          ),
        },
      ],
    },
  };
}

function flattened(figures) {
  const flat = ({ before, meanwhile }) => ({ before: before.heldMs, held: meanwhile.heldMs, delay: meanwhile.delayMs });
  return Object.fromEntries(
    Object.entries(figures).map(([workload, row]) => [
      workload,
      Object.fromEntries(Object.entries(row).map(([name, runs]) => [name, runs.map(flat)])),
    ]),
  );
}
