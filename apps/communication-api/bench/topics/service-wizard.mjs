// The service in apps/communication-api: how long it takes to answer with the pages of the wizard, beside a bare Fastify
// route. All take turns.
import { bar, createCells } from 'headgate-bench/cells';
import { inRounds } from 'headgate-bench/rounds';
import { median, quantile } from 'headgate-bench/statistics';
import { spread, table, whole } from 'headgate-bench/table';
import { atMost, targetRow } from 'headgate-bench/targets';
import { BARE, EMBEDDED, SERVERS, startServices } from '../support/service-fleet.mjs';
import { requestBytes, sendAll } from '../support/service-load.mjs';
import { loadPage } from '../support/service-pages.mjs';

const MOST_P99_MS = 15;
const MOST_BYTES = 30_000;
const NAMES = [BARE, EMBEDDED, SERVERS];
/** One browser after the other: the time until an answer is then the time that the service needs. */
const CONNECTIONS = 1;
const SMALL = 'a page with a form';
const LARGE = 'a page with proxy fields';
const CONFIGS = { [SMALL]: {}, [LARGE]: { global: { allow_user_proxy_override: true } } };
const MINUTE_MS = 60_000;

export async function measure({ quick, profile, progress, rounds = quick ? 3 : 9, seconds = 1.5 }) {
  const { members, versions, stop } = await startServices(NAMES, { profile });
  const pages = {};
  const counts = {};
  const run = async ({ name }, { name: workload }, isWarmUp) => {
    const { port } = members[name];
    const key = `${workload} ${name}`;
    pages[key] ??= await openPage(members[name], name, CONFIGS[workload]);
    const { request, bytes, elsewhere } = pages[key];
    const each = isWarmUp ? 200 : counts[key];
    const { seconds: took, milliseconds } = await sendAll(port, [Array.from({ length: each }, () => request)]);
    if (isWarmUp) counts[key] = Math.max(200, Math.round((each / took) * seconds));
    return { medianMs: median(milliseconds), p99Ms: quantile(milliseconds, 0.99), bytes, elsewhere };
  };
  const workloads = Object.keys(CONFIGS).map((name) => ({ name, contestants: NAMES.map((one) => ({ name: one })) }));
  try {
    const figures = await inRounds({ rounds, workloads, progress, measure: run });
    return { versions, rounds, seconds, connections: CONNECTIONS, figures };
  } finally {
    await stop();
  }
}

/** Opens a link as a browser does, and returns the request for its page, and the bytes of all that the page needs. */
async function openPage({ port, token }, name, config) {
  const origin = `http://127.0.0.1:${port}`;
  if (name === BARE) return { request: requestBytes('/page', {}, '', 'GET'), ...(await loadPage(origin, '/page')) };
  const headers = { 'x-api-key': token, 'content-type': 'application/json' };
  const expires_on = new Date(Date.now() + 120 * MINUTE_MS).toISOString();
  const body = JSON.stringify({ providers: 'mock', redirect_uri: 'https://app.example/cb', expires_on, config });
  const { link } = await (await fetch(`${origin}/v2/auth/link`, { method: 'POST', headers, body })).json();
  const entry = await fetch(origin + new URL(link).pathname, { redirect: 'manual' });
  const cookie = entry.headers.getSetCookie()[0].split(';')[0];
  const path = entry.headers.get('location').split('?')[0];
  // The host is the one that the link was opened at.
  const request = requestBytes(path, { host: `127.0.0.1:${port}`, cookie }, '', 'GET');
  return { request, ...(await loadPage(origin, path, { cookie })) };
}

export function report({ rounds, seconds, figures }) {
  const cells = createCells(figures);
  const workloads = Object.keys(figures);
  const row = (workload) => (name) => [
    name === BARE ? name : `**${name}**`,
    workload,
    show(cells.spread('medianMs', workload, name)),
    show(cells.spread('p99Ms', workload, name)),
    whole(cells.figure('bytes', workload, name)),
  ];
  return {
    title: 'The service: pages of the wizard',
    markdown: `
\`apps/communication-api\`, built, in a process of its own, answers with pages of the wizard: it reads the link, the
application and the session, opens what is encrypted, and makes the HTML. Milliseconds until the answer, over one
connection: the median and the 99th percentile, each as median (least–most) of ${rounds} rounds of about ${seconds} s in
which all take turns. The load and PostgreSQL run on the same machine. *Bytes* are the page, its stylesheet and its
script, not compressed. The floor is a Fastify route that sends a constant page.

${table(
  ['', 'page', 'median ms', 'ms of 99 %', 'bytes'],
  workloads.flatMap((workload) => Object.keys(figures[workload]).map(row(workload))),
)}`,
    targets: [EMBEDDED, SERVERS].flatMap((name) =>
      workloads.flatMap((workload) => [
        ...targetRow(`${name}, ${workload}: ms of 99 %`, cells.spread('p99Ms', workload, name), atMost(MOST_P99_MS)),
        ...targetRow(
          `${name}, ${workload}: bytes`,
          cells.spread('bytes', workload, name),
          atMost(MOST_BYTES),
          middleOf,
        ),
        ...targetRow(
          `${name}, ${workload}: requests to elsewhere`,
          cells.spread('elsewhere', workload, name),
          atMost(0),
          middleOf,
        ),
      ]),
    ),
    chart: {
      title: 'Pages of the wizard: milliseconds of 99 %',
      unit: 'milliseconds',
      scale: 'linear',
      better: 'less',
      panels: workloads.map((workload) => ({
        title: workload,
        bars: Object.keys(figures[workload]).flatMap((name) =>
          bar(name, name === BARE ? 'floor' : 'ours', cells.spread('p99Ms', workload, name)),
        ),
      })),
    },
  };
}

const middleOf = ({ median: middle }) => whole(middle);

const show = (cell) => (cell === undefined ? '–' : spread(cell));
