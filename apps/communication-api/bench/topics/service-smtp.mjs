// The service in apps/communication-api: what it adds to nodemailer, which sends its emails. All send to the same mail
// server and take turns.
import { randomUUID } from 'node:crypto';
import { bar, createCells } from 'headgate-bench/cells';
import { chooseWorkloads, contestantsOf, inRounds } from 'headgate-bench/rounds';
import { median, spreadOf } from 'headgate-bench/statistics';
import { spread, table, whole } from 'headgate-bench/table';
import { atLeast, atMost, targetRow } from 'headgate-bench/targets';
import {
  NODEMAILER,
  SMTP_AGAINST,
  SMTP_EMBEDDED,
  SMTP_SERVERS,
  SMTP_WITHOUT_COPIES,
  startServices,
} from '../support/service-fleet.mjs';
import { requestBytes, sendAll } from '../support/service-load.mjs';

/** Clients of the service, whether they send with one account, and how late the mail server answers. */
const LOADS = {
  'one at a time': { connections: 1 },
  'five at once': { connections: 5 },
  'ten at once for one account 40 ms away': { connections: 10, isOneAccount: true, delayMs: 40 },
};
const [ONE, FIVE, FAR] = Object.keys(LOADS);
const NAMES = [NODEMAILER, SMTP_EMBEDDED, SMTP_SERVERS, SMTP_WITHOUT_COPIES];
const MOST_ADDED_MS = { [SMTP_EMBEDDED]: 15, [SMTP_SERVERS]: 8 };
const LEAST_OF_NODEMAILER = 0.4;
const [SUBJECT, BODY] = [
  'Your order has left our warehouse',
  '<p>Hello Ann,</p><p>your order <b>4711</b> is on its <a href="https://example.com/4711">way</a>.</p>',
];

export async function measure({ quick, profile, only, against, progress, rounds = quick ? 3 : 9, seconds = 1.5 }) {
  const candidates = [...NAMES, ...(against === undefined ? [] : Object.values(SMTP_AGAINST))];
  const all = Object.keys(LOADS).map((name) => ({
    name,
    contestants: candidates.map((candidate) => ({ candidate })),
  }));
  const workloads = chooseWorkloads(all, only);
  const names = [...contestantsOf(workloads)].map(({ name }) => name);
  const { members, askSinks, versions, stop } = await startServices(names, { against, profile });
  const counts = {};
  const run = async ({ name }, { name: workload }, isWarmUp) => {
    const load = LOADS[workload];
    const { connections, delayMs } = load;
    await askSinks({ delayMs });
    // So many that a measurement takes about the asked time; known after the warm-up.
    const each = isWarmUp ? 40 : counts[`${workload} ${name}`];
    const figure = await (name === NODEMAILER
      ? sendDirectly(members[name], each, connections)
      : sendOver(members[name], each, load, name === SMTP_WITHOUT_COPIES ? undefined : askSinks));
    if (isWarmUp) counts[`${workload} ${name}`] = Math.max(10, Math.round((figure.perSecond * seconds) / connections));
    return figure;
  };
  try {
    const figures = await inRounds({ rounds, workloads, progress, measure: run });
    return { versions, rounds, seconds, figures };
  } finally {
    await stop();
  }
}

/** @param askSinks of a service that files copies: the processor time counts until the last one is filed */
async function sendOver({ port, token, accounts, ask }, each, { connections, isOneAccount }, askSinks) {
  const requests = Array.from({ length: connections }, (_, connection) =>
    Array.from({ length: each }, () => {
      const fields = { 'x-api-key': token, 'idempotency-key': randomUUID(), 'content-type': 'application/json' };
      return requestBytes('/api/v1/emails', fields, emailOf(accounts[isOneAccount ? 0 : connection]));
    }),
  );
  const before = await ask('figures');
  const { seconds, milliseconds } = await sendAll(port, requests);
  await askSinks?.({ filed: milliseconds.length });
  const after = await ask('figures');
  return figureOf(milliseconds, seconds, after.cpuMicros - before.cpuMicros);
}

async function sendDirectly({ ask }, each, connections) {
  const email = { from: 'mailbox-0@example.com', to: { name: 'Ann', address: 'ann@example.com' }, subject: SUBJECT };
  const asked = { sends: each * connections, connections, email: { ...email, html: BODY } };
  const { seconds, cpuMicros, milliseconds } = await ask(asked);
  return figureOf(milliseconds, seconds, cpuMicros);
}

const figureOf = (milliseconds, seconds, cpuMicros) => ({
  perSecond: milliseconds.length / seconds,
  cpuMs: cpuMicros / 1_000 / milliseconds.length,
  answerMs: median(milliseconds),
});

const emailOf = (account) =>
  JSON.stringify({
    account_id: account,
    to: [{ identifier: 'ann@example.com', display_name: 'Ann' }],
    subject: SUBJECT,
    body: BODY,
  });

export function report({ rounds, seconds, figures }) {
  const cells = createCells(figures);
  const runs = (workload) => Object.keys(figures[workload] ?? {});
  const row = (workload) => (name) => [
    name === NODEMAILER ? name : `**${name}**`,
    workload,
    whole(cells.figure('perSecond', workload, name)),
    show(cells.spread('answerMs', workload, name)),
    show(cells.spread('cpuMs', workload, name)),
    name === NODEMAILER ? '' : show(cells.ratio('perSecond', [workload, name], NODEMAILER)),
  ];
  return {
    title: 'The service: sends by SMTP',
    markdown: `
\`apps/communication-api\`, built, in a process of its own, with its default settings: it sends emails with an
idempotency key by SMTP, and files a copy of each by IMAP. *Without copies*, it files none (\`APPEND_MAX_BYTES=0\`). The
floor is nodemailer with a pool of connections, called in a loop: it remembers nothing, and files nothing. All send to
the same mail server, a process that keeps nothing. Median (least–most) of ${rounds} rounds of about ${seconds} s in which
all take turns.

- *Ms until the answer* is the median of a round. Each client waits for an answer before its next request.
- Nodemailer has its own bounds: a pool of five connections.
- *Process ms* is the processor time per email, until the last copy is filed.
- Everything runs on the same machine: the load, the mail server, PostgreSQL and Redis.

${table(
  ['', 'clients', 'per second', 'ms until the answer', 'process ms', 'per second: ratio to nodemailer'],
  Object.keys(LOADS).flatMap((workload) => runs(workload).map(row(workload))),
)}`,
    targets: Object.keys(MOST_ADDED_MS).flatMap((name) => [
      ...targetRow(`${name}: ms added to nodemailer`, addedMs(figures, name), atMost(MOST_ADDED_MS[name])),
      ...[FIVE, FAR].flatMap((workload) =>
        targetRow(
          `${name}, ${workload}: sends per second, ratio to nodemailer`,
          cells.ratio('perSecond', [workload, name], NODEMAILER),
          atLeast(LEAST_OF_NODEMAILER),
        ),
      ),
    ]),
    chart: {
      title: 'Time until an email is sent',
      unit: 'milliseconds',
      scale: 'linear',
      better: 'less',
      panels: Object.keys(LOADS).map((workload) => ({
        title: workload,
        bars: runs(workload).flatMap((name) =>
          bar(name, name === NODEMAILER ? 'floor' : 'ours', cells.spread('answerMs', workload, name)),
        ),
      })),
    },
  };
}

/** Within each round, so that what slows down the machine slows down both. */
function addedMs(figures, name) {
  const [ours, floor] = [figures[ONE]?.[name], figures[ONE]?.[NODEMAILER]];
  return ours && floor && spreadOf(ours.map(({ answerMs }, round) => answerMs - floor[round].answerMs));
}

const show = (value) => (value === undefined ? '' : spread(value));
