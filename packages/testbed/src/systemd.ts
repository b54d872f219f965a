import { execFileSync, spawnSync } from 'node:child_process';
import { findOrInstall, isOnPath } from './find-program.ts';

/** Installs systemd-analyze, if it is missing and this process may do so. */
export function needSystemdAnalyze(): void {
  findOrInstall(
    () => (isOnPath('systemd-analyze') ? true : undefined),
    'systemd',
    'systemd-analyze is needed: install the package systemd.',
  );
}

/** Values of a setting of a unit, in order. */
export const unitSettings = (unit: string, name: string): string[] =>
  [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value]) => value as string);

/** The exit code and output of `systemd-analyze verify` for a file. A unit without a fault: 0, and no output. */
export function verifyUnit(path: string): {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
} {
  const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', path], { encoding: 'utf8' });
  return { status, stdout, stderr };
}

/** The exposure of a unit by `systemd-analyze security`, of 10; undefined: it is not rated as OK. */
export function exposureOf(path: string): string | undefined {
  const args = ['security', '--offline=true', '--no-pager', '--threshold=20', path];
  return /Overall exposure level .*: (\d\.\d) OK/.exec(
    execFileSync('systemd-analyze', args, { encoding: 'utf8' }),
  )?.[1];
}
