import { writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { reportHtml, reportText, simulate } from 'headgate-simulate';
import type { Terminal } from './terminal.ts';
import {
  FileError,
  jsonText,
  openTrace,
  policyOf,
  progress,
  readFlags,
  readLimits,
  shareOf,
  TRACE_OPTIONS,
} from './trace-flags.ts';
import { UsageError } from './usage.ts';

const OPTIONS = {
  ...TRACE_OPTIONS,
  candidate: { type: 'string' },
  html: { type: 'string' },
  'max-newly-rejected': { type: 'string' },
} as const;

/** More requests than allowed are newly rejected. */
const TOO_MANY = 3;

/**
 * Runs `headgate simulate`.
 * @param args what follows `simulate`
 * @returns exit code: 0, or 3 if more requests are newly rejected than the flag allows
 * @throws UsageError, ConfigError, OptionError, FileError, TraceError
 */
export async function runSimulate(args: readonly string[], terminal: Terminal): Promise<number> {
  const values = readFlags('simulate', args, OPTIONS);
  const { config, candidate, html, 'max-newly-rejected': most } = values;
  if (config === undefined) throw new UsageError('simulate needs --config FILE');
  if (most !== undefined && candidate === undefined)
    throw new UsageError('--max-newly-rejected needs --candidate FILE');
  const allowed = most === undefined ? undefined : shareOf('max-newly-rejected', most);
  const current = await readLimits(config);
  const wanted = candidate === undefined ? undefined : await readLimits(candidate);
  const { trace, size } = await openTrace('simulate', values, current);
  const { onProgress, end } = progress(terminal, size);
  const report = await simulate({
    current: policyOf(current),
    candidate: wanted && policyOf(wanted),
    trace,
    onProgress,
  }).finally(end);
  if (html !== undefined) {
    const title = `Simulated limits: ${[config, ...(candidate === undefined ? [] : [candidate])].map((name) => basename(name)).join(' and ')}`;
    await writeFile(html, reportHtml(report, title)).catch((error: Error) => {
      throw new FileError(`--html ${html}: ${error.message}`);
    });
  }
  terminal.out(values.json === true ? jsonText(report) : reportText(report));
  if (report.requests === 0) {
    terminal.error('headgate: the log has no request that limits decide about\n');
    return allowed === undefined ? 0 : TOO_MANY;
  }
  if (allowed === undefined || report.newlyRejected <= allowed) return 0;
  terminal.error(`headgate: ${report.newlyRejected * 100} % are newly rejected, more than ${allowed * 100} %\n`);
  return TOO_MANY;
}
