// What a program of a user does with the package; the compiler checks it in ESM and in CommonJS.
import {
  type Recommendation,
  readTrace,
  recommend,
  reportHtml,
  reportText,
  type SimulationReport,
  simulate,
  TraceError,
} from 'headgate-simulate';

export async function simulated(log: ReadableStream<Uint8Array> & AsyncIterable<Uint8Array>): Promise<string> {
  const routes = [{ route: 'GET /chats/{id}', account: 'query.account_id' }, 'POST /emails'];
  const report: SimulationReport = await simulate({
    current: { limits: { allMethods: ['60/1m'] } },
    candidate: { limits: { allMethods: ['30/1m'] }, account: (id) => ({ provider: id === 'a' ? 'imap' : undefined }) },
    trace: readTrace(log, { format: 'combined', routes, sortMs: 1_000 }),
    onProgress: ({ lines }) => lines.toFixed(),
  });
  const trace = [
    { at: 1, account: 'a', route: 'x', id: '1', cost: 2 },
    { at: 2, settles: '1', cost: 0 },
  ];
  const found: Recommendation | undefined = await recommend({ trace, windows: ['1m'], by: 'accounts' }).catch(
    (error: unknown) => (error instanceof TraceError ? undefined : Promise.reject(error)),
  );
  const longest: number | undefined = report.routes[0]?.longestLockedOutMs;
  return reportText(report) + reportHtml(report, 'title') + found?.routes[0]?.windows[0]?.max + longest;
}

// @ts-expect-error an unknown format
readTrace('', { format: 'xml' });
