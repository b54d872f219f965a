import { type Recommendation, recommend, recommendationText } from 'headgate-simulate';
import type { Terminal } from './terminal.ts';
import { jsonText, openTrace, progress, readFlags, readLimits, shareOf, TRACE_OPTIONS } from './trace-flags.ts';
import { UsageError } from './usage.ts';

const OPTIONS = {
  ...TRACE_OPTIONS,
  windows: { type: 'string' },
  keep: { type: 'string' },
  by: { type: 'string' },
} as const;

/**
 * Runs `headgate recommend`.
 * @param args what follows `recommend`
 * @returns exit code 0
 * @throws UsageError, ConfigError, OptionError, LimitError, FileError, TraceError
 */
export async function runRecommend(args: readonly string[], terminal: Terminal): Promise<number> {
  const values = readFlags('recommend', args, OPTIONS);
  const { config, windows, keep = '99.9%', by } = values;
  if (config === undefined) throw new UsageError('recommend needs --config FILE');
  if (windows === undefined) throw new UsageError('recommend needs --windows, such as 1m,1d');
  const kept = shareOf('keep', keep);
  const { trace, size } = await openTrace('recommend', values, await readLimits(config));
  const { onProgress, end } = progress(terminal, size);
  const options = { windows: windows.split(','), keep: kept, by: by as Recommendation['by'] | undefined };
  const found = await recommend({ trace, ...options, onProgress }).finally(end);
  terminal.out(values.json === true ? jsonText(found) : recommendationText(found));
  return 0;
}
