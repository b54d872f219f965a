import { isHeadgateError } from 'headgate';
import { readTrace, reportText, type SimulationReport, simulate } from 'headgate-simulate';
import type { PlaygroundLimits } from './limits.ts';

/** How a pasted log is read. */
export interface TraceInput {
  readonly log: string;
  /** Routes such as `GET /chats/{chat_id}`, with commas between them. */
  readonly routes: string;
  /** Where a line names its account. */
  readonly account: string;
}

/** More than anyone pastes, and less than makes a page slow. */
export const MAX_LOG = 5_000_000;

export const SAMPLE: TraceInput = {
  routes: 'GET /api/v1/chats, POST /api/v1/emails',
  account: 'query.account_id',
  log: sampleLog(),
};

/** Two accounts: one that asks every 20 seconds, and one that comes in bursts. */
function sampleLog(): string {
  const calm = Array.from({ length: 15 }, (_, index) => [index * 20, 'acc_calm', 'GET /api/v1/chats'] as const);
  const bursts = [5, 95, 185, 270].flatMap((start) =>
    [0, 1, 2, 3, 4, 5].map((second) => [start + second, 'acc_bursts', 'POST /api/v1/emails'] as const),
  );
  return [...calm, ...bursts]
    .sort(([a], [b]) => a - b)
    .map(([second, account, route]) => {
      const at = new Date(second * 1_000).toISOString().slice(14, 19);
      const request = `${route}?account_id=${account}`;
      return `192.0.2.1 - - [21/Nov/2026:10:${at} +0000] "${request} HTTP/1.1" 200 512 "-" "client"`;
    })
    .join('\n');
}

export interface Replayed {
  readonly report: SimulationReport;
  readonly text: string;
}

/**
 * Lets a pasted log pass the limits.
 * @returns the report, or what the library says about the input
 */
export async function replay(
  { log, routes, account }: TraceInput,
  current: PlaygroundLimits,
  candidate: PlaygroundLimits | undefined,
): Promise<Replayed | string> {
  if (log.length > MAX_LOG)
    return `The playground reads ${MAX_LOG / 1e6} MB. For more, use headgate simulate on a file.`;
  const names = routes.split(',').flatMap((route) => route.trim() || []);
  // A line that names its account and its route itself needs neither a list of routes nor a place.
  const own = names.length === 0 && account.trim() === '' ? { map: { account: 'account', route: 'route' } } : {};
  const place = account.trim() === '' ? {} : { account: account.trim() };
  try {
    const trace = readTrace(log, { routes: names, ...place, ...(log.trimStart().startsWith('{') ? own : {}) });
    const policies = { current: { limits: current }, ...(candidate && { candidate: { limits: candidate } }) };
    const report = await simulate({ ...policies, trace });
    return { report, text: reportText(report) };
  } catch (error) {
    if (!isHeadgateError(error)) throw error;
    return error.message;
  }
}
