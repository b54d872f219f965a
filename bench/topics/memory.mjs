// One check in memory, accepted or rejected, by number of keys: headgate, its floors and its peers. Each candidate has
// its own process, and they take turns.
import { bar, createCells } from 'headgate-bench/cells';
import { createFleet } from 'headgate-bench/fleet';
import { peerVersions } from 'headgate-bench/peers';
import { chooseWorkloads, contestantsOf, inRounds } from 'headgate-bench/rounds';
import { spread, table, whole } from 'headgate-bench/table';
import { atLeast, atMost, targetRow } from 'headgate-bench/targets';
import { CANDIDATES, PEERS } from '../support/memory-candidates.mjs';

const KEY_COUNTS = [1, 1_000, 100_000, 1_000_000];
const WARM_UP_SECONDS = 0.3;
/** The names in bench/results. The page says "rejected", as the rest of the documentation does. */
const OUTCOMES = ['accepted', 'refused'];
const titleOf = (workload) => workload.replace('refused', 'rejected');
const [SYNC_FLOOR, AWAITED_FLOOR] = ['floor, sync', 'floor, awaited'];
const [SYNC, AWAITED] = ['headgate, consumeSync', 'headgate, await consume'];
const UNION = 'rate-limiter-flexible, union of four';
const [FLOOR_MOST, PEER_LEAST, UNION_LEAST] = [1.5, 1, 10];

export async function measure(options) {
  const { quick, only, profile, progress, rounds = quick ? 2 : 11, seconds = quick ? 0.03 : 0.1 } = options;
  const figures = {};
  for (const workload of workloads(quick ? KEY_COUNTS.slice(0, 3) : KEY_COUNTS, only)) {
    const { keyCount, outcome, name } = workload;
    const fleet = createFleet(new URL('../support/memory-worker.mjs', import.meta.url), profile, [
      '--max-old-space-size=8192',
    ]);
    try {
      for (const contestant of contestantsOf([workload])) {
        progress(`${name}: filling the store of ${contestant.name}`);
        await fleet.start(contestant.name, { candidate: contestant.name, keyCount, denied: outcome === 'refused' });
      }
      const ask = (contestant, _, isWarmUp) =>
        fleet.ask(contestant.name, { seconds: isWarmUp ? Math.max(seconds, WARM_UP_SECONDS) : seconds });
      Object.assign(figures, await inRounds({ rounds, workloads: [workload], progress, measure: ask }));
    } finally {
      await fleet.stop();
    }
  }
  return { versions: peerVersions(PEERS), rounds, seconds, figures };
}

function workloads(keyCounts, only) {
  const cells = keyCounts.flatMap((keyCount) =>
    OUTCOMES.map((outcome) => {
      const takesPart = ([, { onlyRejects }]) => outcome === 'refused' || !onlyRejects;
      const contestants = Object.entries(CANDIDATES).filter(takesPart);
      const name = `${outcome}, ${whole(keyCount)} ${keyCount === 1 ? 'key' : 'keys'}`;
      return { name, keyCount, outcome, contestants: contestants.map(([candidate]) => ({ candidate })) };
    }),
  );
  return chooseWorkloads(cells, only);
}

export function report({ rounds, seconds, figures }) {
  const cells = createCells(figures);
  return {
    title: 'One check in memory',
    markdown: `
Nanoseconds of CPU per check, garbage collection included: the median of ${rounds} rounds of ${seconds} s in which all
candidates take turns, each in its own process. After the dot is the ratio to the floor of the same round: median
(least–most). Keys are picked in a fixed random order, and no window ends during the run. headgate checks four windows;
a peer checks as many as its row says.

The floor is a bare \`Map\` whose records have four windows: get, compare, add. It is a baseline, not a lower bound:
with many keys the access to memory decides, and headgate’s flat records touch less memory than objects do. Synchronous
checks come first, awaited ones below them, each compared with the floor of its kind.

${tables(cells, Object.keys(figures)).join('\n\n')}

With 1,000,000 keys, the processes of all candidates together need about 7 GB of memory.`,
    targets: Object.keys(figures).flatMap((workload) => targets(cells, workload)),
    chart: {
      title: 'One check in memory: headgate with four windows, peers with one',
      unit: 'nanoseconds of CPU per check',
      scale: 'log',
      better: 'less',
      panels: Object.keys(figures).map((workload) => ({ title: titleOf(workload), bars: bars(cells, workload) })),
    },
  };
}

const kindOf = (candidate) => candidate.match(/^(floor|headgate)/)?.[1].replace('headgate', 'ours') ?? 'peer';

function bars(cells, workload) {
  return Object.keys(CANDIDATES).flatMap((candidate) =>
    bar(candidate, kindOf(candidate), cells.spread('ns', workload, candidate)),
  );
}

function tables(cells, names) {
  const columnsOf = (outcome) => names.filter((name) => name.startsWith(outcome));
  return OUTCOMES.filter((outcome) => columnsOf(outcome).length > 0).map((outcome) =>
    outcomeTable(cells, columnsOf(outcome), outcome),
  );
}

function outcomeTable(cells, columns, outcome) {
  const rows = Object.entries(CANDIDATES).map(([candidate, { windows, waits, less = '' }]) => [
    candidate.startsWith('headgate') ? `**${candidate}**` : candidate,
    windows,
    ...columns.map((workload) => {
      const ns = cells.figure('ns', workload, candidate);
      const ratio = cells.ratio('ns', [workload, candidate], waits ? AWAITED_FLOOR : SYNC_FLOOR);
      if (ns === undefined) return '';
      return candidate.startsWith('floor') || ratio === undefined ? whole(ns) : `${whole(ns)} · ${spread(ratio)}`;
    }),
    less,
  ]);
  const wasRun = (row) => row.slice(2, -1).some((value) => value !== '');
  return table(
    [titleOf(outcome), 'windows', ...columns.map((name) => name.slice(outcome.length + 2)), 'does less'],
    rows.filter(wasRun),
  );
}

function targets(cells, workload) {
  const row = (what, ratio, target) => targetRow(`${titleOf(workload)}: ${what}`, ratio, target);
  const toFloor = (name, floor) => cells.ratio('ns', [workload, name], floor);
  const times = (peer) => cells.ratio('ns', [workload, peer], AWAITED);
  const peer = fastestAwaited(cells, workload);
  return [
    ...(workload.startsWith('accepted')
      ? [
          ...row('consumeSync relative to the floor', toFloor(SYNC, SYNC_FLOOR), atMost(FLOOR_MOST)),
          ...row('await consume relative to the floor', toFloor(AWAITED, AWAITED_FLOOR), atMost(FLOOR_MOST)),
        ]
      : []),
    ...row(`times as fast as ${peer}, the fastest awaited peer`, peer && times(peer), atLeast(PEER_LEAST)),
    ...row(`times as fast as ${UNION}`, times(UNION), atLeast(UNION_LEAST)),
  ];
}

/** The fastest awaited peer that checks one window, or undefined if none was run. */
function fastestAwaited(cells, workload) {
  const ns = (name) => cells.figure('ns', workload, name);
  const awaited = Object.entries(CANDIDATES).filter(([name, { windows, waits }]) => windows === 1 && waits && ns(name));
  return awaited.map(([name]) => name).sort((left, right) => ns(left) - ns(right))[0];
}
