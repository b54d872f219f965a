// The service in apps/communication-api beside programs that queue emails: how long it takes until a mail server has them
// all, and what that costs. All send to the same mail server and take turns.
import { randomUUID } from 'node:crypto';
import { bar, createCells } from 'headgate-bench/cells';
import { peerVersions } from 'headgate-bench/peers';
import { cpuMeter, processTree, rssOf, sharedMemoryOf } from 'headgate-bench/process-figures';
import { inRounds } from 'headgate-bench/rounds';
import { spread, table, whole } from 'headgate-bench/table';
import { EMAILENGINE } from '../support/emailengine.mjs';
import {
  HARAKA,
  NODEMAILER,
  QUEUE,
  SMTP_EMBEDDED,
  SMTP_SERVERS,
  SMTP_WITHOUT_COPIES,
  startServices,
} from '../support/service-fleet.mjs';
import { requestBytes, sendAll } from '../support/service-load.mjs';

const NAMES = [NODEMAILER, SMTP_EMBEDDED, SMTP_SERVERS, SMTP_WITHOUT_COPIES, HARAKA, QUEUE];
const OURS = [SMTP_EMBEDDED, SMTP_SERVERS, SMTP_WITHOUT_COPIES];
const FILES_COPIES = [SMTP_EMBEDDED, SMTP_SERVERS];
const SERVERS_OF = {
  [SMTP_SERVERS]: ['postgres', 'redis'],
  [SMTP_WITHOUT_COPIES]: ['postgres', 'redis'],
  [QUEUE]: ['redis'],
};
const DOES_LESS = {
  [NODEMAILER]: 'remembers nothing: no keys, no limits, no accounts, no copies',
  [HARAKA]: 'no keys, no limits, no accounts, no copies; its clients speak SMTP; it answers before it sends',
  [QUEUE]:
    'keys only of emails that wait; no limits, no accounts, no copies; its queue is in memory only; it answers before it sends',
};
const CONNECTIONS = 10;
const WORKLOAD = 'delivery';
const MB = 1_000_000;
const [SUBJECT, BODY] = [
  'Your order has left our warehouse',
  '<p>Hello Ann,</p><p>your order <b>4711</b> is on its <a href="https://example.com/4711">way</a>.</p>',
];

export async function measure({ quick, profile, progress, rounds = quick ? 2 : 5 }) {
  const emails = quick ? 100 : 300;
  const { members, pids, askSinks, versions, stop } = await startServices(NAMES, { profile });
  const run = async ({ name }) => {
    const member = members[name];
    const own = () => processTree(member.pid);
    const servers = () => (SERVERS_OF[name] ?? []).flatMap((server) => processTree(pids[server]));
    const [ownMicros, serversMicros] = [cpuMeter(own), cpuMeter(servers)];
    const began = now();
    await submit(name, member, emails);
    const accepted = now();
    const wanted = { delivered: emails, filed: FILES_COPIES.includes(name) ? emails : 0 };
    const { delivered, deliveredAt, filedAt } = await askSinks(wanted);
    if (delivered !== emails) throw new Error(`${name}: ${delivered} emails arrived, not ${emails}`);
    return {
      perSecond: (emails / (deliveredAt - began)) * 1_000,
      acceptedPerSecond: (emails / (accepted - began)) * 1_000,
      ...(wanted.filed > 0 && { filedPerSecond: (emails / (filedAt - began)) * 1_000 }),
      cpuMs: ownMicros() / 1_000 / emails,
      serversCpuMs: serversMicros() / 1_000 / emails,
      mb: own().reduce((sum, pid) => sum + rssOf(pid), 0) / MB,
      serversMb: sharedMemoryOf(servers()) / MB,
    };
  };
  try {
    const workload = { name: WORKLOAD, contestants: NAMES.map((name) => ({ name })) };
    const figures = await inRounds({ rounds, workloads: [workload], progress, measure: run });
    const all = { ...versions, ...peerVersions(['Haraka', 'bullmq']) };
    return { versions: all, rounds, emails, connections: CONNECTIONS, figures };
  } finally {
    await stop();
  }
}

/** In milliseconds since 1970, for the time of another process. */
const now = () => performance.timeOrigin + performance.now();

/** Hands emails over, and waits until all are accepted. */
async function submit(name, { port, token, accounts, ask }, emails) {
  const to = { name: 'Ann', address: 'ann@example.com' };
  const email = { from: 'mailbox-0@example.com', to, subject: SUBJECT, html: BODY };
  if (name === NODEMAILER || name === HARAKA) return ask({ sends: emails, connections: CONNECTIONS, email });
  const headers = () => ({ 'x-api-key': token, 'idempotency-key': randomUUID(), 'content-type': 'application/json' });
  const request = (connection) =>
    name === QUEUE
      ? requestBytes('/emails', headers(), JSON.stringify(email))
      : requestBytes('/api/v1/emails', headers(), bodyFor(accounts[connection]));
  const each = emails / CONNECTIONS;
  return sendAll(
    port,
    Array.from({ length: CONNECTIONS }, (_, connection) => Array.from({ length: each }, () => request(connection))),
  );
}

const bodyFor = (account) =>
  JSON.stringify({
    account_id: account,
    to: [{ identifier: 'ann@example.com', display_name: 'Ann' }],
    subject: SUBJECT,
    body: BODY,
  });

export function report({ rounds, emails, connections, figures }) {
  const cells = createCells(figures);
  const of = (field, name) => cells.spread(field, WORKLOAD, name);
  const names = NAMES.filter((name) => figures[WORKLOAD][name] !== undefined);
  const hasServers = (name) => SERVERS_OF[name] !== undefined;
  const row = (name) => [
    OURS.includes(name) ? `**${name}**` : name,
    show(of('perSecond', name)),
    whole(cells.figure('acceptedPerSecond', WORKLOAD, name)),
    FILES_COPIES.includes(name) ? whole(cells.figure('filedPerSecond', WORKLOAD, name)) : '',
    spread(of('cpuMs', name)),
    hasServers(name) ? spread(of('serversCpuMs', name)) : '',
    whole(cells.figure('mb', WORKLOAD, name)),
    hasServers(name) ? whole(cells.figure('serversMb', WORKLOAD, name)) : '',
    DOES_LESS[name] ?? '',
  ];
  return {
    title: 'The service: delivery, beside queues',
    markdown: `
${emails} emails are handed over by ${connections} clients at once, each of which waits until its email is accepted. What
is compared is when a mail server has received all of them: \`apps/communication-api\` answers after it has sent an email,
while a queue answers before. The mail server is the same process for all, and keeps nothing. Median (least–most) of
${rounds} rounds in which all take turns.

- *Delivered* and *accepted* are emails per second, from the first request until the mail server has the last email, and
  until the last answer. *Filed* is the same for the copies in the folder for sent emails, which only the service files.
- *CPU ms* is processor time per email: of the program, and of its database and Redis (*servers*), until the copies are
  filed as well. A server process that ends meanwhile is not counted. *MB* is the memory after a round.
- The floor is nodemailer with a pool of connections. [Haraka](https://haraka.github.io) is a mail server with a queue on
  the disk; nodemailer hands the emails over to it. *BullMQ + nodemailer* is a Fastify route that puts emails into a
  queue in Redis, and a worker in the same process that sends ten at a time.

${table(
  ['', 'delivered', 'accepted', 'filed', 'CPU ms', 'CPU ms, servers', 'MB', 'MB, servers', 'does less'],
  [...names.map(row), [EMAILENGINE.name, 'not measured', '', '', '', '', '', '', EMAILENGINE.reason]],
)}

${EMAILENGINE.details}`,
    chart: {
      title: `${emails} emails: delivered per second`,
      unit: 'emails per second',
      scale: 'linear',
      better: 'more',
      panels: [{ title: '', bars: names.flatMap((name) => bar(name, kindOf(name), of('perSecond', name))) }],
    },
  };
}

const kindOf = (name) => (name === NODEMAILER ? 'floor' : OURS.includes(name) ? 'ours' : 'peer');

const show = ({ median, least, most }) => `${whole(median)} (${whole(least)}–${whole(most)})`;
