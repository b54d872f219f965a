// The service in apps/communication-api: what a send with an idempotency key and its replay cost, beside a bare Fastify
// route and the mock provider called directly. All take turns.
import { randomUUID } from 'node:crypto';
import { bar, createCells } from 'headgate-bench/cells';
import { chooseWorkloads, contestantsOf, inRounds } from 'headgate-bench/rounds';
import { median } from 'headgate-bench/statistics';
import { spread, table, whole } from 'headgate-bench/table';
import { atLeast, atMost, targetRow } from 'headgate-bench/targets';
import {
  ACCOUNTS,
  AGAINST,
  BARE,
  EMBEDDED,
  MOCK_EMBEDDED,
  MOCK_SERVERS,
  POSTGRES,
  startServices,
} from '../support/service-fleet.mjs';
import { requestBytes, sendAll } from '../support/service-load.mjs';

const CONNECTIONS = 16;
const [SEND, REPLAY] = ['send', 'replay'];
const LEAST_PER_SECOND = { [EMBEDDED]: 200, [POSTGRES]: 400 };
const MOST_SEND_MS = { [EMBEDDED]: 4, [POSTGRES]: 2 };
const MOST_REPLAY_MS = 0.4;
const NAMES = [BARE, EMBEDDED, MOCK_EMBEDDED, POSTGRES, MOCK_SERVERS];
const ANSWERS = [BARE, EMBEDDED, POSTGRES];

export async function measure({ quick, profile, only, against, progress, rounds = quick ? 3 : 9, seconds = 1.5 }) {
  const others = against === undefined ? [] : Object.values(AGAINST);
  const workload = (name, candidates) => ({ name, contestants: candidates.map((candidate) => ({ candidate })) });
  const all = [workload(SEND, [...NAMES, ...others]), workload(REPLAY, [...ANSWERS, ...others])];
  const workloads = chooseWorkloads(all, only);
  const names = [...contestantsOf(workloads)].map(({ name }) => name);
  const { members, versions, stop } = await startServices(names, { against, profile });
  const newKeys = () => Array.from({ length: CONNECTIONS }, () => []);
  const counts = {};
  const lastSent = {};
  const run = async ({ name }, { name: workload }, isWarmUp) => {
    const member = members[name];
    // So many that a measurement takes about the asked time; known after the warm-up.
    const each = isWarmUp ? 60 : counts[`${workload} ${name}`];
    let figure;
    if (name.startsWith('mock')) figure = await sendDirectly(member, each);
    else {
      if (workload === SEND) {
        lastSent[name] = newKeys().map(() => Array.from({ length: each }, () => randomUUID()));
      }
      const sent = lastSent[name];
      // A replay repeats the emails of the send in the same round.
      const keys =
        workload === SEND ? sent : sent.map((list) => Array.from({ length: each }, (_, i) => list[i % list.length]));
      figure = await sendOver(member, keys);
    }
    if (isWarmUp) counts[`${workload} ${name}`] = Math.max(10, Math.round((figure.perSecond * seconds) / CONNECTIONS));
    return figure;
  };
  try {
    const figures = await inRounds({ rounds, workloads, progress, measure: run });
    return { versions, rounds, seconds, connections: CONNECTIONS, figures };
  } finally {
    await stop();
  }
}

async function sendOver({ port, token, accounts, ask }, keys) {
  const requests = keys.map((list) =>
    list.map((key) => {
      const fields = { 'x-api-key': token, 'idempotency-key': key, 'content-type': 'application/json' };
      return requestBytes('/api/v1/emails', fields, emailTo(key, accounts));
    }),
  );
  const before = await ask('figures');
  const { seconds, milliseconds } = await sendAll(port, requests);
  const after = await ask('figures');
  const answers = milliseconds.length;
  return {
    perSecond: answers / seconds,
    cpuMs: (after.cpuMicros - before.cpuMicros) / 1_000 / answers,
    answerMs: median(milliseconds),
  };
}

async function sendDirectly({ ask }, each) {
  const sends = each * CONNECTIONS;
  const { seconds, cpuMicros } = await ask({ sends, connections: CONNECTIONS });
  return { perSecond: sends / seconds, cpuMs: cpuMicros / 1_000 / sends };
}

/** The same email for the same key: its account follows from the key. */
const emailTo = (key, accounts) =>
  JSON.stringify({
    account_id: accounts[Number.parseInt(key.slice(0, 8), 16) % accounts.length],
    to: [{ identifier: 'ann@example.com', display_name: 'Ann' }],
    subject: 'Your order has left our warehouse',
    body: '<p>Hello Ann,</p><p>your order <b>4711</b> is on its <a href="https://example.com/4711">way</a>.</p>',
  });

export function report({ rounds, seconds, connections, figures }) {
  const cells = createCells(figures);
  const runs = (workload) => Object.keys(figures[workload] ?? {});
  const row = (workload) => (name) => [
    isFloor(name) ? name : `**${name}**`,
    workload,
    whole(cells.figure('perSecond', workload, name)),
    show(cells.spread('cpuMs', workload, name)),
    show(cells.spread('answerMs', workload, name)),
    ratioToFloor(cells, workload, name),
  ];
  return {
    title: 'The service: sends and replays',
    markdown: `
\`apps/communication-api\`, built, in a process of its own, with its default settings: it sends emails with an
idempotency key to the mock provider, as drafts, for ${ACCOUNTS} accounts. *Embedded* has its database in the process;
the other one has a PostgreSQL server with the settings of a new installation, and nothing else. A replay is a request that was
answered before. Median (least–most) of ${rounds} rounds of about ${seconds} s in which all take turns, over
${connections} keep-alive connections.

- *Server ms* is the CPU time of the measured process per request. It does not have the time of the PostgreSQL server.
  JavaScript runs on one core, so a process answers at most about 1,000 / *server ms* requests per second.
- The load and PostgreSQL run on the same machine, so requests per second, and the time until the answer, measure
  all of them together, and everything else that runs there.
- The first floor is a Fastify route that reads the same request and has the same answer. The second floor calls the mock
  provider in the process, on a database of the same kind: a draft is stored, then sent. Neither checks an API key, counts
  limits, remembers keys, or writes down what was sent.

${table(
  ['', 'request', 'per second', 'server ms', 'ms until the answer', 'server ms: ratio to the mock'],
  [SEND, REPLAY].flatMap((workload) => runs(workload).map(row(workload))),
)}`,
    targets: Object.keys(LEAST_PER_SECOND).flatMap((name) => [
      ...targetRow(
        `${name}: sends per second`,
        cells.spread('perSecond', SEND, name),
        atLeast(LEAST_PER_SECOND[name]),
        ({ median: middle, least, most }) => `${whole(middle)} (${whole(least)}–${whole(most)})`,
      ),
      ...targetRow(`${name}: server ms of a send`, cells.spread('cpuMs', SEND, name), atMost(MOST_SEND_MS[name])),
      ...targetRow(`${name}: server ms of a replay`, cells.spread('cpuMs', REPLAY, name), atMost(MOST_REPLAY_MS)),
    ]),
    chart: {
      title: 'CPU time of the service per request',
      unit: 'milliseconds of server CPU',
      scale: 'log',
      better: 'less',
      panels: [SEND, REPLAY].map((workload) => ({
        title: workload,
        bars: runs(workload).flatMap((name) =>
          bar(name, isFloor(name) ? 'floor' : 'ours', cells.spread('cpuMs', workload, name)),
        ),
      })),
    },
  };
}

const isFloor = (name) => name === BARE || name.startsWith('mock');

const show = (value) => (value?.median === undefined ? '' : spread(value));

function ratioToFloor(cells, workload, name) {
  const floor = { [EMBEDDED]: MOCK_EMBEDDED, [POSTGRES]: MOCK_SERVERS }[name];
  const ratio = floor && workload === SEND ? cells.ratio('cpuMs', [workload, name], floor) : undefined;
  return ratio === undefined ? '' : spread(ratio);
}
