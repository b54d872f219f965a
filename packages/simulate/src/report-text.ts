import { aligned } from './aligned.ts';
import type { OutcomeMatrix, SimulationReport, WindowHeadroom } from './report.ts';
import { shownName, shownNumber, shownShare, shownSpan, shownTime } from './shown.ts';
import type { SkipReason, TraceFigures } from './trace.ts';

/** Rows of a group in the text. JSON and HTML show all. */
const MAX_ROWS = 20;

/** Each reason why a line was skipped, in words. */
export const SKIP_REASONS: Readonly<Record<SkipReason, string>> = {
  unreadable: 'not a line of this format',
  too_long: 'too long',
  other: 'about something else than a request',
  no_route: 'no route matches',
  no_account: 'not limited, or without an account',
  refused: 'answered before the limits',
  replayed: 'replayed by an idempotency key',
  degraded: 'decided without the store',
  blocked: 'rejected by a block',
  in_flight: 'rejected because too many requests ran at the same time',
};

/** The caveat of every report. */
export const CAVEAT =
  'Clients would have acted differently: those that are rejected wait, retry or give up, and the log has only what they did.';

/** The report for a terminal: plain text, without control characters even if the log contains some. */
export function reportText(report: SimulationReport): string {
  const { trace, matrix, requests, hasCandidate } = report;
  const text = [
    ...traceLines(trace),
    `Span: ${shownTime(report.from)} to ${shownTime(report.to)}`,
    ...noteLines(report),
    '',
    ...(hasCandidate ? matrixLines(matrix, requests) : currentLines(matrix, requests)),
    ...loggedLines(report),
    ...groupLines('ROUTE', report.routes, hasCandidate),
    ...groupLines('PROVIDER', report.providers, hasCandidate),
    ...groupLines('ACCOUNT', report.accounts, hasCandidate),
    ...headroomLines('current', report.headroom.current),
    ...(hasCandidate ? headroomLines('candidate', report.headroom.candidate) : []),
    '',
    CAVEAT,
  ];
  return `${text.join('\n')}\n`;
}

/** The figures of reading a log, for people. */
export function traceLines({ lines, requests, skipped, format }: TraceFigures): string[] {
  const reasons = Object.entries(skipped).map(
    ([reason, count]) => `  ${shownNumber(count)} skipped: ${SKIP_REASONS[reason as SkipReason]}`,
  );
  // A list of events contains requests without a line.
  if (lines === 0 && requests > 0) return [`${shownNumber(requests)} requests of a list`];
  return [`${shownNumber(lines)} lines (format ${format ?? 'unknown'}), ${shownNumber(requests)} requests`, ...reasons];
}

/** Notes on facts that make the figures of a report less certain. */
export function noteLines({ trace, lostSettlements, unknownPlans, unknownLanes }: SimulationReport): string[] {
  const notes: readonly (readonly [number, string])[] = [
    [trace.late, 'requests came too late to be sorted: raise the time for sorting'],
    [trace.inexact, 'lines do not say when the limits decided: it is estimated'],
    [trace.changes, 'changes of limits, counters or config are in the log: they are not simulated'],
    [lostSettlements, 'refunds could not be simulated: they came too late, or without their request'],
    [unknownPlans, "requests have a customer's plan that the limits do not have: they are not simulated"],
    [unknownLanes, 'requests have a lane that the limits do not have: they are not simulated'],
  ];
  return notes.filter(([count]) => count > 0).map(([count, note]) => `Note: ${shownNumber(count)} ${note}`);
}

function matrixLines({ none, both, onlyCurrent, onlyCandidate }: OutcomeMatrix, requests: number): string[] {
  return table([
    ['', 'CANDIDATE ACCEPTS', 'CANDIDATE REJECTS'],
    ['current accepts', shownNumber(none), `${shownNumber(onlyCandidate)} newly rejected`],
    ['current rejects', `${shownNumber(onlyCurrent)} newly passed`, shownNumber(both)],
    ['newly rejected', share(onlyCandidate, requests), ''],
  ]);
}

function currentLines({ none, both }: OutcomeMatrix, requests: number): string[] {
  return table([
    ['ACCEPTED', 'REJECTED', 'REJECTED SHARE'],
    [shownNumber(none), shownNumber(both), share(both, requests)],
  ]);
}

function loggedLines({ logged }: SimulationReport): string[] {
  if (logged === undefined) return [];
  const { accepted, rejected, differ, first } = logged;
  const all = accepted + rejected;
  const head = `The current limits judge ${shownNumber(all - differ)} of ${shownNumber(all)} requests as the log says.`;
  const differences = first.map(
    ({ at, account, route, logged: outcome }) =>
      `  ${shownTime(at)} ${shownName(account)} ${shownName(route)}: the log says ${outcome}`,
  );
  return ['', head, ...(differ > 0 ? [`The first of ${shownNumber(differ)} that differ:`, ...differences] : [])];
}

type Group = SimulationReport['accounts'][number] & { readonly none?: number };

function groupLines(title: string, groups: readonly Group[], hasCandidate: boolean): string[] {
  if (groups.length === 0) return [];
  const rows = groups.slice(0, MAX_ROWS).map((group) => {
    const { name, both, onlyCurrent, onlyCandidate, firstNewlyRejectedAt, longestLockedOutMs } = group;
    const requests = group.none === undefined ? [] : [shownNumber(group.none + both + onlyCurrent + onlyCandidate)];
    if (!hasCandidate) return [shownName(name), ...requests, shownNumber(both)];
    const longest = onlyCandidate === 0 ? '-' : shownSpan(longestLockedOutMs);
    const counts = [onlyCandidate, onlyCurrent, both].map(shownNumber);
    return [shownName(name), ...requests, ...counts, shownTime(firstNewlyRejectedAt), longest];
  });
  const requests = groups[0]?.none === undefined ? [] : ['REQUESTS'];
  const head = hasCandidate
    ? ['NEWLY REJECTED', 'NEWLY PASSED', 'REJECTED BY BOTH', 'FIRST', 'LOCKED OUT UP TO']
    : ['REJECTED'];
  const more = groups.length > MAX_ROWS ? [`… and ${groups.length - MAX_ROWS} more: see --json or --html`] : [];
  return ['', ...table([[title, ...requests, ...head], ...rows]), ...more];
}

function headroomLines(policy: string, windows: readonly WindowHeadroom[]): string[] {
  if (windows.length === 0) return [];
  const rows = windows
    .slice(0, MAX_ROWS)
    .map(({ limit, route, window, p50, p95, p99, max, accountsOver80 }) => [
      `${shownName(route)}${limit === 'route' ? '' : ' (All methods)'}`,
      window,
      ...[p50, p95, p99, max].map(shownShare),
      shownNumber(accountsOver80),
    ]);
  const more = windows.length > MAX_ROWS ? [`… and ${windows.length - MAX_ROWS} more: see --json or --html`] : [];
  const head = [`USED OF ${policy.toUpperCase()}`, 'WINDOW', 'P50', 'P95', 'P99', 'MAX', 'ACCOUNTS OVER 80 %'];
  return ['', ...table([head, ...rows]), ...more];
}

function share(part: number, all: number): string {
  return shownShare(all === 0 ? 0 : part / all);
}

const table = (rows: readonly (readonly string[])[]): string[] => aligned(rows).trimEnd().split('\n');
