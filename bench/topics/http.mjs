// What a limiter adds to a bare server of each framework, in server CPU per request. The servers of a framework take
// turns.
import { bar, createCells } from 'headgate-bench/cells';
import { createFleet } from 'headgate-bench/fleet';
import { peerVersions } from 'headgate-bench/peers';
import { versionOf } from 'headgate-bench/provenance';
import { chooseWorkloads, inRounds } from 'headgate-bench/rounds';
import { spreadOf } from 'headgate-bench/statistics';
import { spread, table, whole } from 'headgate-bench/table';
import { atMost, targetRow } from 'headgate-bench/targets';
import { HTTP_APPS } from '../support/http-apps.mjs';
import { ACCOUNTS, loadHttp } from '../support/http-load.mjs';

const CONNECTIONS = 32;
const REQUESTS = 18_000;
const WARM_UP_FACTOR = 3;
/** Microseconds of CPU. headgate must also add less than the framework's own limiter. */
const MOST_ADDED = { 'node:http': 3, Fastify: 3, Hono: 6, 'Express 5': 20 };
const FRAMEWORK_PACKAGES = ['fastify', 'hono', '@hono/node-server', 'express', '@nestjs/core', 'koa', 'h3'];
const PEERS = ['@fastify/rate-limit', 'hono-rate-limiter', 'express-rate-limit', '@nestjs/throttler'];
const [BARE, OURS] = ['bare', 'headgate'];
/** headgate in another place of the framework. */
const OURS_TOO = ['headgate, as a guard'];
/** What headgate's place in the framework costs by itself. */
const EMPTY = 'empty interceptor';
const ONE = 'one window; charges rejected requests';
/** What a row does less than headgate. */
const LESS = {
  bare: 'no limit',
  [EMPTY]: 'no limit',
  '@fastify/rate-limit': `${ONE}; its memory bound evicts live counters`,
  'hono-rate-limiter': `${ONE}; no memory bound`,
  'express-rate-limit': `${ONE}; no memory bound`,
  '@nestjs/throttler': `${ONE}; no memory bound`,
};

export async function measure(options) {
  const { quick, only, profile, progress, rounds = quick ? 3 : 15 } = options;
  const figures = {};
  for (const workload of chooseWorkloads(workloads(), only)) {
    const fleet = createFleet(new URL('../support/http-server.mjs', import.meta.url), profile);
    const ask = async ({ name }, _, isWarmUp) => {
      const before = await fleet.ask(name, 'cpu');
      const requests = isWarmUp ? REQUESTS * WARM_UP_FACTOR : REQUESTS;
      const { seconds, answers } = await loadHttp({ port: before.port, connections: CONNECTIONS, requests });
      const { cpuMicros } = await fleet.ask(name, 'cpu');
      return { cpuMicros: (cpuMicros - before.cpuMicros) / answers, perSecond: answers / seconds };
    };
    try {
      for (const { name } of workload.contestants)
        await fleet.start(name, { framework: workload.name, candidate: name });
      Object.assign(figures, await inRounds({ rounds, workloads: [workload], progress, measure: ask }));
    } finally {
      await fleet.stop();
    }
  }
  const versions = Object.fromEntries(FRAMEWORK_PACKAGES.map((name) => [name, versionOf(name)]));
  const settings = { rounds, requests: REQUESTS, connections: CONNECTIONS, accounts: ACCOUNTS };
  return { versions: { ...versions, ...peerVersions(PEERS) }, ...settings, figures };
}

function workloads() {
  return Object.entries(HTTP_APPS).map(([name, candidates]) => ({
    name,
    contestants: Object.keys(candidates).map((candidate) => ({ candidate })),
  }));
}

export function report({ rounds, requests, connections, accounts, figures }) {
  const cells = createCells(figures);
  const frameworks = Object.keys(figures);
  return {
    title: 'HTTP, by framework',
    markdown: `
Server CPU per request: a bare server of the framework, the same server behind headgate (memory store, four windows),
and behind the limiter that its users usually choose (memory store, one window). Median of ${rounds} rounds of
${whole(requests)} requests from ${whole(accounts)} accounts, over ${connections} keep-alive connections. The servers of
one framework take turns within a round.

- *Added* is the median (least–most) of the differences to the bare server in the same round. It is not the difference
  of the medians. If the range includes 0, the machine was too noisy for a conclusion.
- A target against a peer uses the differences between the two within the rounds.
- The load comes from the same machine, so requests per second measure server and load together.
${placeText(frameworks.some((framework) => EMPTY in figures[framework]))}- Elysia is left out, because it is made for Bun.

${table(
  ['server', 'CPU, µs per request', 'added, µs', 'requests per second', 'does less'],
  frameworks.flatMap((framework) =>
    Object.keys(figures[framework]).map((candidate) => row(cells, framework, candidate)),
  ),
)}`,
    targets: frameworks.flatMap((framework) => targets(cells, figures, framework)),
    chart: {
      title: 'CPU that a limiter adds per request: headgate with four windows, peers with one',
      unit: 'microseconds of server CPU',
      scale: 'linear',
      better: 'less',
      panels: frameworks.map((framework) => ({
        title: framework,
        bars: Object.keys(figures[framework]).flatMap((candidate) =>
          candidate === BARE ? [] : bar(candidate, kindOf(candidate), added(cells, framework, candidate)),
        ),
      })),
    },
  };
}

function placeText(wasMeasured) {
  if (!wasMeasured) return '';
  return `- In Nest, headgate is an interceptor by default, so that it sees what every guard has set. Its peer is a guard. The row
  of an empty interceptor shows what Nest takes for the place alone.
`;
}

function row(cells, framework, candidate) {
  const more = added(cells, framework, candidate);
  return [
    isOurs(candidate) ? `${framework}, **${candidate}**` : `${framework}, ${candidate}`,
    cells.figure('cpuMicros', framework, candidate).toFixed(2),
    candidate === BARE || more === undefined ? '' : spread(more),
    whole(cells.figure('perSecond', framework, candidate)),
    LESS[candidate] ?? '',
  ];
}

const isOurs = (candidate) => candidate === OURS || OURS_TOO.includes(candidate);

function kindOf(candidate) {
  if (isOurs(candidate)) return 'ours';
  return candidate === EMPTY ? 'floor' : 'peer';
}

/** Differences to the bare server of the same round. */
function added(cells, framework, candidate) {
  return difference(cells, framework, candidate, BARE);
}

function difference(cells, framework, candidate, base) {
  const [all, others] = [cells.rounds(framework, candidate), cells.rounds(framework, base)];
  return all && others && spreadOf(all.map(({ cpuMicros }, round) => cpuMicros - others[round].cpuMicros));
}

function targets(cells, figures, framework) {
  const names = Object.keys(figures[framework]);
  const peers = names.filter((candidate) => candidate !== BARE && kindOf(candidate) === 'peer');
  const places = [OURS, ...OURS_TOO.filter((candidate) => names.includes(candidate))];
  const most = MOST_ADDED[framework];
  const row = (what, measured, bound) => targetRow(`${framework}: ${what}`, measured, atMost(bound));
  return [
    ...(most === undefined ? [] : row('added µs', added(cells, framework, OURS), most)),
    ...places.flatMap((ours) =>
      peers.flatMap((peer) =>
        row(`${ours === OURS ? '' : `${ours}: `}µs more than ${peer}`, difference(cells, framework, ours, peer), 0),
      ),
    ),
  ];
}
