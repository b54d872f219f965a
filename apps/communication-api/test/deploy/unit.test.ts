/** The unit for systemd: it is valid, it isolates the process, and it gives the process the time to stop. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { exposureOf, needSystemdAnalyze, unitSettings, verifyUnit } from 'headgate-testbed/systemd';
import { beforeAll, expect, test } from 'vitest';
import { deployText, servicePage } from '../support/deploy-files.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const unit = deployText('communication-api@.service');
const folder = temporaryFolder();
const file = join(folder, 'communication-api@.service');
const MAIN = '/opt/communication-api/current/apps/communication-api/dist/main.js';

/** Values of a setting, in order. */
const settings = (name: string): string[] => unitSettings(unit, name);

beforeAll(() => {
  needSystemdAnalyze();
  writeFileSync(join(folder, 'main.js'), '');
  // `verify` looks for the programs.
  writeFileSync(file, unit.replaceAll('/usr/bin/node', process.execPath).replaceAll(MAIN, join(folder, 'main.js')));
});

test('systemd-analyze verify has nothing to say, and finds a fault', () => {
  expect(verifyUnit(file)).toEqual({ status: 0, stdout: '', stderr: '' });
  const broken = join(folder, 'broken@.service');
  writeFileSync(broken, unit.replace('ProtectSystem=strict', 'ProtectSystem=sometimes'));
  expect(verifyUnit(broken).stderr).toContain('Failed to parse');
});

test('systemd-analyze security: the exposure is the one on the page, of 10', () => {
  const page = servicePage('security.md').replace(/\s+/g, ' ');
  expect(page).toContain(`rates the unit with ${exposureOf(file)} of 10`);
});

test('it starts the built service itself, without npm, and writes no memory dumps', () => {
  expect(settings('ExecStart')).toEqual([`/usr/bin/node --enable-source-maps ${MAIN} start`]);
  expect(settings('ExecStartPost')).toEqual([`/usr/bin/node ${MAIN} health --wait 80`]);
  expect(settings('LimitCORE')).toEqual(['0']);
  expect(settings('EnvironmentFile')).toEqual(['/etc/communication-api/env']);
  for (const name of ['database-url', 'secret-keys'])
    expect(settings('LoadCredential')).toContain(`${name}:/etc/communication-api/${name}`);
  // The exit code for a setting that is wrong.
  expect(settings('RestartPreventExitStatus')).toEqual(['2']);
});

test('it waits longer than the process may take to stop', () => {
  const environment = Object.fromEntries(
    settings('Environment')
      .flatMap((line) => line.split(' '))
      .map((pair) => pair.split('=')),
  ) as Record<string, string>;
  const ms = Number(environment.SHUTDOWN_DELAY_MS) + Number(environment.DRAIN_MS) + 15_000;
  expect(Number(settings('TimeoutStopSec')[0]) * 1_000).toBeGreaterThan(ms);
});
