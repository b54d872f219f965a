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
  // 3 means that it could read the text, and reports findings.
  return run(['check', 'metrics'], [0, 3], text).lines;
}

/** The mistakes in a file of rules: one line per problem. */
export function checkRules(file: string): string[] {
  const { status, lines } = run(['check', 'rules', '--lint-fatal', file], [0, 1, 3]);
  return status === 0 ? [] : lines;
}

/** Which unit tests of rules fail, line by line. */
export function testRules(file: string): string[] {
  const { status, lines } = run(['test', 'rules', file], [0, 1]);
  return status === 0 ? [] : lines;
}

function run(args: readonly string[], expected: readonly number[], input = ''): { status: number; lines: string[] } {
  const { status, stdout, stderr, error } = spawnSync(findPromtool(), args, { input });
  if (error !== undefined) throw error;
  const output = `${stdout}${stderr}`.trim();
  if (status === null || !expected.includes(status)) throw new Error(`promtool ended with ${status}: ${output}`);
  return { status, lines: output === '' ? [] : output.split('\n') };
}

/** The lines of headgate's own metrics. */
export function ownMetrics(text: string): string {
  return text.replace(/^(?!(# (HELP|TYPE) )?headgate_).*\n/gm, '');
}
