import { shareBar, timelineChart } from './charts.ts';
import { type Html, html, raw } from './html.ts';
import type { SimulationReport, WindowHeadroom } from './report.ts';
import { STYLE, STYLE_HASH } from './report-style.ts';
import { CAVEAT, noteLines, traceLines } from './report-text.ts';
import { shownNumber, shownShare, shownSpan, shownTime } from './shown.ts';

/** Most rows of a table. */
const MAX_ROWS = 200;

/**
 * The report as a page: one file with charts, without scripts, which loads nothing.
 * @param title such as the names of the two configs
 */
export function reportHtml(report: SimulationReport, title = 'Simulated limits'): string {
  const { hasCandidate, headroom } = report;
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '${raw(STYLE_HASH)}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<style>${raw(STYLE)}</style>
</head>
<body>
<main>
<h1>${title}</h1>
<p>${time(report.from)} to ${time(report.to)}. ${raw(traceLines(report.trace).join('; '))}.</p>
${noteLines(report).map((note) => html`<p class="note">${raw(note)}</p>`)}
${hasCandidate ? matrix(report) : summary(report)}
${logged(report)}
<h2>Over time</h2>
${timelineChart(report)}
${groups('Routes', report.routes, hasCandidate)}
${groups('Providers', report.providers, hasCandidate)}
${groups('Accounts', report.accounts, hasCandidate)}
<p>${shownNumber(report.accountsNewlyRejected)} accounts are newly rejected at least once, ${shownNumber(report.accountsNewlyPassed)} newly passed. At most 50 are listed.</p>
${windows('How full the windows of the current limits were', headroom.current)}
${hasCandidate ? windows('How full the windows of the candidate would have been', headroom.candidate) : undefined}
<p class="note">${raw(CAVEAT)}</p>
</main>
</body>
</html>
`;
  return page.text;
}

function matrix({ matrix: { none, both, onlyCurrent, onlyCandidate }, newlyRejected }: SimulationReport): Html {
  return html`<h2>Outcomes</h2>
<p class="headline"><strong>${shownShare(newlyRejected)}</strong> of the requests are newly rejected.</p>
${table(
  ['', 'Candidate accepts', 'Candidate rejects'],
  [
    [html`Current accepts`, number(none), html`<strong>${shownNumber(onlyCandidate)}</strong> newly rejected`],
    [html`Current rejects`, html`<strong>${shownNumber(onlyCurrent)}</strong> newly passed`, number(both)],
  ],
  'Outcomes',
)}`;
}

function summary({ matrix: { none, both }, requests }: SimulationReport): Html {
  return html`<h2>Outcomes</h2>
<p class="headline"><strong>${shownShare(requests === 0 ? 0 : both / requests)}</strong> of the requests are rejected: ${shownNumber(both)}. ${shownNumber(none)} are accepted.</p>`;
}

function logged({ logged: figures }: SimulationReport): Html | undefined {
  if (figures === undefined) return undefined;
  const { agree, differ, first } = figures;
  const rows = first.map((one) => [time(one.at), html`${one.account}`, html`${one.route}`, html`${one.logged}`]);
  return html`<p>The current limits judge ${shownNumber(agree)} of ${shownNumber(agree + differ)} requests as the log says.</p>
${differ === 0 ? undefined : table(['Time', 'Account', 'Route', 'Log'], rows, 'The first that differ')}`;
}

/** A time is never broken in two. */
function time(ms: number | undefined): Html {
  return html`<span class="time">${shownTime(ms)}</span>`;
}

type Group = SimulationReport['accounts'][number] & { readonly none?: number };

function groups(title: string, rows: readonly Group[], hasCandidate: boolean): Html | undefined {
  if (rows.length === 0) return undefined;
  const isWhole = rows[0]?.none !== undefined;
  const head = [
    title.slice(0, -1),
    ...(isWhole ? ['Requests'] : []),
    ...(hasCandidate
      ? ['Newly rejected', 'Newly passed', 'Rejected by both', 'First newly rejected', 'Locked out up to']
      : ['Rejected']),
  ];
  const cells = rows.slice(0, MAX_ROWS).map((row) => {
    const { name, none = 0, both, onlyCurrent, onlyCandidate, firstNewlyRejectedAt, longestLockedOutMs } = row;
    const start = [html`${name}`, ...(isWhole ? [number(none + both + onlyCurrent + onlyCandidate)] : [])];
    if (!hasCandidate) return [...start, number(both)];
    return [
      ...start,
      ...[onlyCandidate, onlyCurrent, both].map(number),
      time(firstNewlyRejectedAt),
      html`${onlyCandidate === 0 ? '-' : shownSpan(longestLockedOutMs)}`,
    ];
  });
  return html`<h2>${title}</h2>${table(head, cells, title)}${more(rows.length)}`;
}

function windows(title: string, rows: readonly WindowHeadroom[]): Html | undefined {
  if (rows.length === 0) return undefined;
  const head = ['Route', 'Limit', 'Window', 'p50', 'p95', 'p99', '', 'Max', 'Accounts over 80 %'];
  const cells = rows
    .slice(0, MAX_ROWS)
    .map(({ route, limit, window, p50, p95, p99, max, accountsOver80 }) => [
      html`${route}`,
      html`${limit === 'route' ? 'route' : 'All methods'}`,
      html`${window}`,
      html`${shownShare(p50)}`,
      html`${shownShare(p95)}`,
      html`${shownShare(p99)}`,
      shareBar(p99),
      html`${shownShare(max)}`,
      number(accountsOver80),
    ]);
  return html`<h2>${title}</h2>
<p>The used part of each window, after each request that it accepted.</p>
${table(head, cells, title)}${more(rows.length)}`;
}

/** It scrolls by itself, also with the keyboard, if it is wider than the page. */
function table(head: readonly string[], rows: readonly (readonly Html[])[], name: string): Html {
  return html`<div class="table" role="region" aria-label="${name}" tabindex="0"><table><thead><tr>${head.map((cell) =>
    cell === '' ? html`<td></td>` : html`<th scope="col">${cell}</th>`,
  )}</tr></thead><tbody>
${rows.map(
  ([first, ...rest]) => html`<tr><th scope="row">${first}</th>${rest.map((cell) => html`<td>${cell}</td>`)}</tr>\n`,
)}</tbody></table></div>`;
}

const more = (rows: number): Html | undefined =>
  rows > MAX_ROWS ? html`<p>… and ${shownNumber(rows - MAX_ROWS)} more.</p>` : undefined;
const number = (value: number): Html => html`${shownNumber(value)}`;
