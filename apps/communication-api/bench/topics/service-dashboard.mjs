// The service in apps/communication-api: what a page of the dashboard costs, beside a bare Fastify route that answers with
// the same bytes. All take turns.
import { randomUUID } from 'node:crypto';
import { bar, createCells } from 'headgate-bench/cells';
import { inRounds } from 'headgate-bench/rounds';
import { median, quantile } from 'headgate-bench/statistics';
import { spread, table, whole } from 'headgate-bench/table';
import { atMost, targetRow } from 'headgate-bench/targets';
import { BARE, EMBEDDED, SERVERS, startServices } from '../support/service-fleet.mjs';
import { requestBytes, sendAll } from '../support/service-load.mjs';
import { loadPage } from '../support/service-pages.mjs';

const NAMES = [BARE, EMBEDDED, SERVERS];
const OURS = [EMBEDDED, SERVERS];
const PAGES = {
  'list of applications': () => '/dashboard/applications',
  'application with keys': ({ application }) => `/dashboard/applications/${application}`,
  'account with live windows': ({ application, accounts }) =>
    `/dashboard/applications/${application}/accounts/${accounts[0]}?live`,
};
/** One browser after the other: the time until an answer is then the time that the service needs. */
const CONNECTIONS = 1;
const EMAILS = 5;
/** Those of a page of the wizard. */
const MOST_P99_MS = 15;
const MOST_BYTES = 30_000;

export async function measure({ quick, profile, progress, rounds = quick ? 3 : 9, seconds = 1.5 }) {
  const { members, versions, stop } = await startServices(NAMES, { profile });
  const pages = {};
  const counts = {};
  const run = async ({ name }, { name: page }, isWarmUp) => {
    const member = members[name];
    const key = `${page} ${name}`;
    pages[key] ??= name === BARE ? await copyOf(pages[`${page} ${SERVERS}`], member) : await openPage(member, page);
    const { request, bytes, elsewhere } = pages[key];
    const each = isWarmUp ? 100 : counts[key];
    const before = await member.ask('figures');
    const { seconds: took, milliseconds } = await sendAll(
      member.port,
      Array.from({ length: CONNECTIONS }, () => Array.from({ length: each }, () => request)),
    );
    const after = await member.ask('figures');
    if (isWarmUp) counts[key] = Math.max(100, Math.round((each / took) * seconds));
    return {
      medianMs: median(milliseconds),
      p99Ms: quantile(milliseconds, 0.99),
      cpuMs: (after.cpuMicros - before.cpuMicros) / 1_000 / milliseconds.length,
      ...{ bytes, elsewhere },
    };
  };
  try {
    for (const name of OURS) await useWindows(members[name]);
    // The floor comes last in the round that warms up: it copies the pages of the service.
    const contestants = NAMES.toReversed().map((name) => ({ name }));
    const workloads = Object.keys(PAGES).map((name) => ({ name, contestants }));
    const figures = await inRounds({ rounds, workloads, progress, measure: run });
    return { versions, rounds, seconds, connections: CONNECTIONS, figures };
  } finally {
    await stop();
  }
}

/** Sends some emails, so that the windows of the account have counts. */
async function useWindows({ port, token, accounts }) {
  const body = JSON.stringify({
    account_id: accounts[0],
    to: [{ identifier: 'ann@example.com' }],
    body: '<p>Hello</p>',
  });
  const headers = () => ({ 'x-api-key': token, 'idempotency-key': randomUUID(), 'content-type': 'application/json' });
  const email = () => requestBytes('/api/v1/emails', headers(), body);
  await sendAll(port, [Array.from({ length: EMAILS }, email)]);
}

async function openPage(member, page) {
  const { port, cookie } = member;
  const path = PAGES[page](member);
  const loaded = await loadPage(`http://127.0.0.1:${port}`, path, { cookie });
  return { request: requestBytes(path, { host: `127.0.0.1:${port}`, cookie }, '', 'GET'), ...loaded };
}

/** The same bytes, from the floor. */
async function copyOf({ html, bytes, elsewhere }, { ask }) {
  const name = randomUUID();
  await ask({ [name]: html });
  return { request: requestBytes(`/${name}`, {}, '', 'GET'), bytes, elsewhere };
}

export function report({ rounds, seconds, figures }) {
  const cells = createCells(figures);
  const pages = Object.keys(figures);
  const names = (page) => NAMES.filter((name) => figures[page][name] !== undefined);
  const row = (page) => (name) => [
    name === BARE ? name : `**${name}**`,
    page,
    ...['medianMs', 'p99Ms', 'cpuMs'].map((field) => spread(cells.spread(field, page, name))),
    whole(cells.figure('bytes', page, name)),
  ];
  return {
    title: 'The service: pages of the dashboard',
    markdown: `
\`apps/communication-api\`, built, in a process of its own, answers an owner who has signed in: it reads the session, the
organization and what the page shows, and makes the HTML. There are 20 applications; the one that is shown has 20 keys,
and the account has sent emails within its windows. Milliseconds until the answer, over one connection: the median and
the 99th percentile, each as median (least–most) of ${rounds} rounds of about ${seconds} s in which all take turns. *CPU
ms* is the time of the process per page, without PostgreSQL and Redis. The load, PostgreSQL and Redis run on the same
machine. *Bytes* are the page with its stylesheet, not compressed. The floor is a Fastify route that answers with the
bytes of the same page.

${table(
  ['', 'page', 'median ms', 'ms of 99 %', 'CPU ms', 'bytes'],
  pages.flatMap((page) => names(page).map(row(page))),
)}

The targets are those of a page of the wizard, which \`service-wizard\` measures.`,
    targets: OURS.flatMap((name) =>
      pages.flatMap((page) => [
        ...targetRow(`${name}, ${page}: ms of 99 %`, cells.spread('p99Ms', page, name), atMost(MOST_P99_MS)),
        ...targetRow(
          `${name}, ${page}: bytes`,
          cells.spread('bytes', page, name),
          atMost(MOST_BYTES, whole(MOST_BYTES)),
          middleOf,
        ),
        ...targetRow(
          `${name}, ${page}: requests to elsewhere`,
          cells.spread('elsewhere', page, name),
          atMost(0),
          middleOf,
        ),
      ]),
    ),
    chart: {
      title: 'Pages of the dashboard: milliseconds of 99 %',
      unit: 'milliseconds',
      scale: 'linear',
      better: 'less',
      panels: pages.map((page) => ({
        title: page,
        bars: names(page).flatMap((name) =>
          bar(name, name === BARE ? 'floor' : 'ours', cells.spread('p99Ms', page, name)),
        ),
      })),
    },
  };
}

const middleOf = ({ median: middle }) => whole(middle);
