import { runCli } from '../../src/cli/cli.ts';
import { type Config, writeConfig } from './gateway.ts';

/** What the command `check` says about a config, without a process: tests of the process show that it prints and exits so. */
export async function checkConfig(
  config: Config | string,
): Promise<{ readonly code: number | undefined; readonly all: string }> {
  let all = '';
  const print = (text: string): void => {
    all += text;
  };
  const code = await runCli(['check', '--config', writeConfig(config)], { out: print, error: print });
  return { code, all };
}

/** The names and indexes that lead to a value in the file. */
export type Path = readonly (string | number)[];

/** A pattern for a path in the file, however its segments are joined. */
export function pathPattern(path: Path): RegExp {
  const escaped = path.map((segment) => String(segment).replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&'));
  return new RegExp(escaped.join('\\W+'));
}
