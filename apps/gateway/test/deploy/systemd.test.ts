/** The unit for systemd: it is valid, it isolates the process, and it gives the process the time to stop. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exposureOf, needSystemdAnalyze, unitSettings, verifyUnit } from 'headgate-testbed/systemd';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { configSchema } from '../../src/config/schema.ts';
import { config, ROOT, textOf } from '../support/deploy-files.ts';

const unit = textOf('headgate.service');
const folder = mkdtempSync(join(tmpdir(), 'headgate-systemd-'));
const file = join(folder, 'headgate.service');
afterAll(() => rmSync(folder, { recursive: true }));

/** Values of a setting, in order. */
const settings = (name: string): string[] => unitSettings(unit, name);

beforeAll(() => {
  needSystemdAnalyze();
  const program = join(folder, 'headgate.cjs');
  writeFileSync(program, '');
  // `verify` looks for the programs.
  writeFileSync(
    file,
    unit
      .replace('/usr/bin/node', process.execPath)
      .replace('/opt/headgate/node_modules/headgate-gateway/dist/headgate.cjs', program),
  );
});

it('systemd-analyze verify has nothing to say', () => {
  expect(verifyUnit(file)).toEqual({ status: 0, stdout: '', stderr: '' });
});

it('a setting with a fault is found', () => {
  const broken = join(folder, 'broken.service');
  writeFileSync(broken, readFileSync(file, 'utf8').replace('ProtectSystem=strict', 'ProtectSystem=sometimes'));
  expect(verifyUnit(broken).stderr).toContain('Failed to parse');
});

it('systemd-analyze security: the exposure is at most 2.0 of 10', () => {
  expect(exposureOf(file)).toMatch(/^[01]\.\d$/);
});

it('starts the process itself, without npx, and reloads it by SIGHUP', () => {
  expect(settings('ExecStart')).toEqual([
    '/usr/bin/node /opt/headgate/node_modules/headgate-gateway/dist/headgate.cjs serve --config /etc/headgate/headgate.json',
  ]);
  expect(settings('ExecReload')).toEqual(['/bin/kill -HUP $MAINPID']);
  expect(settings('Type')).toEqual(['exec']);
});

it('systemd starts it again for ever', () => {
  expect([settings('Restart'), settings('StartLimitIntervalSec')]).toEqual([['always'], ['0']]);
});

it('the command of the page makes a valid unit of a second gateway with ports of its own and the same config', () => {
  const [, script = ''] =
    /^sed '(.*?)' \/etc/m.exec(readFileSync(join(ROOT, 'apps/gateway/docs/production.md'), 'utf8')) ?? [];
  const second = join(folder, 'headgate-2.service');
  writeFileSync(second, execFileSync('sed', [script, file], { encoding: 'utf8' }));
  const lines = readFileSync(second, 'utf8').split('\n');
  const others = lines.filter((line) => !readFileSync(file, 'utf8').split('\n').includes(line));
  expect(others).toEqual([
    expect.stringMatching(/ serve --config \/etc\/headgate\/headgate\.json --port 8082 --admin-port 8083$/),
  ]);
  expect(verifyUnit(second)).toMatchObject({ status: 0, stderr: '' });
});

it('waits longer than the process may take to stop, by default and with the config of apps/gateway/docs/deploy', () => {
  const waitMs = Number(settings('TimeoutStopSec')[0]) * 1_000;
  for (const { shutdownDelayMs, drainMs } of [configSchema.parse({}), config]) {
    expect(waitMs).toBeGreaterThan(shutdownDelayMs + drainMs + 3_000);
  }
});
