import { aligned } from './aligned.ts';
import type { Recommendation } from './recommend.ts';
import { traceLines } from './report-text.ts';
import { shownJson, shownName, shownNumber, shownShare } from './shown.ts';

/** The caveat of every recommendation. */
const ACCEPTED_ONLY =
  'The log of a service that has limits shows the demand that they allow: clients may want more. The log has';

/** The recommendation for a terminal, with limits for a config. */
export function recommendationText(found: Recommendation): string {
  const { routes, by, keep, isLimited, trace } = found;
  const rows = routes.flatMap(({ route, requests, accounts, windows }) =>
    windows.map(({ window, duration, rejected }) => [
      shownName(route),
      shownNumber(requests),
      shownNumber(accounts),
      window ?? `more than 1,000,000/${duration}`,
      shownShare(rejected),
    ]),
  );
  const limited = `${ACCEPTED_ONLY} ${isLimited ? '' : 'no '}rejections.`;
  if (rows.length === 0) return `${[...traceLines(trace), 'There is nothing to recommend.'].join('\n')}\n`;
  return [
    ...traceLines(trace),
    `The smallest limits that keep ${shownShare(keep)} of the ${by}:`,
    '',
    aligned([['ROUTE', 'REQUESTS', 'ACCOUNTS', 'LIMIT', `REJECTED ${by.toUpperCase()}`], ...rows]),
    `"limits": ${shownJson(found.limits)}`,
    '',
    limited,
    '',
  ].join('\n');
}
