import { spawnSync } from 'node:child_process';
import { findOrInstall, isOnPath } from './find-program.ts';

/** Prometheus's own tool: PROMTOOL_BIN, the one on the PATH, or one that is installed now, if this process may do so. */
export function findPromtool(): string {
  return findOrInstall(
    () => process.env.PROMTOOL_BIN ?? (isOnPath('promtool') ? 'promtool' : undefined),
    'prometheus',
    'The tests need promtool: install prometheus, or set PROMTOOL_BIN.',
  );
}

/** What `promtool check metrics` finds in this text: one line per problem. Throws if it cannot read the text. */
export function checkMetrics(text: string): string[] {
  const { status, stdout, stderr, error } = spawnSync(findPromtool(), ['check', 'metrics'], { input: text });
  if (error !== undefined) throw error;
  const output = `${stdout}${stderr}`.trim();
  // 3 means that it could read the text, and has findings.
  if (status !== 0 && status !== 3) throw new Error(`promtool ended with ${status}: ${output}`);
  return output === '' ? [] : output.split('\n');
}

/** The lines of headgate's own metrics. */
export function ownMetrics(text: string): string {
  return text.replace(/^(?!(# (HELP|TYPE) )?headgate_).*\n/gm, '');
}
