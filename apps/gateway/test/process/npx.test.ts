/** What a process does at SIGTERM, by the command that started it. apps/gateway/docs/gateway.md says which commands to use. */
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isOnPath } from 'headgate-testbed/find-program';
import { eventually, send } from 'headgate-testbed/raw-http';
import { expect, it } from 'vitest';
import { configOf, freePort, HEADGATE, scratchFolder, writeConfig } from '../support/gateway.ts';

const page = readFileSync(new URL('../../docs/gateway.md', import.meta.url), 'utf8');

/** Starts the command in a project that has headgate, sends SIGTERM to its process, and waits until all of it has ended. */
async function sigterm(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const cwd = scratchFolder();
  mkdirSync(join(cwd, 'node_modules/.bin'), { recursive: true });
  mkdirSync(join(cwd, 'node_modules/headgate-gateway'));
  symlinkSync(join(HEADGATE, '..'), join(cwd, 'node_modules/headgate-gateway/dist'));
  symlinkSync('../headgate-gateway/dist/headgate.cjs', join(cwd, 'node_modules/.bin/headgate'));
  writeFileSync(
    join(cwd, 'node_modules/headgate-gateway/package.json'),
    '{"name":"headgate-gateway","version":"0.0.0"}',
  );
  writeFileSync(join(cwd, 'package.json'), '{"name":"project","dependencies":{"headgate-gateway":"0.0.0"}}');
  const port = await freePort();
  const config = writeConfig({ ...configOf('http://127.0.0.1:1'), listen: { port } });
  // The gateway and its shell inherit the group, so that nothing is left if the test fails.
  const child = spawn(command, [...args, 'serve', '--config', config], {
    cwd,
    env: { ...process.env, ...env, npm_config_offline: 'true', npm_config_update_notifier: 'false' },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  // The end of the output is that of the last process that has it.
  const ended = new Promise<void>((resolve) => child.on('close', () => resolve()));
  try {
    const isReady = () => send(port, { path: '/readyz' }).then(Boolean, () => false);
    await eventually(isReady, 'the gateway', 20_000);
    child.kill('SIGTERM');
    await ended;
    return output
      .split('\n')
      .flatMap((line) => (line.startsWith('{') ? [(JSON.parse(line) as { msg: string }).msg] : []));
  } finally {
    try {
      process.kill(-(child.pid as number), 'SIGKILL');
    } catch {
      // All have ended.
    }
  }
}

const DRAINED = ['listening', 'draining', 'stopped'];

it.each<[documented: string, command: string, args: string[]]>([
  ['node_modules/.bin/headgate', 'node_modules/.bin/headgate', []],
  [
    'node_modules/headgate-gateway/dist/headgate.cjs',
    process.execPath,
    ['node_modules/headgate-gateway/dist/headgate.cjs'],
  ],
])('%s, as the docs say: SIGTERM drains', async (documented, command, args) => {
  expect(page).toContain(`\`${documented}`);
  expect(await sigterm(command, args)).toEqual(DRAINED);
});

it.each(['sh', 'bash'].filter((shell) => shell === 'sh' || isOnPath(shell)))(
  'npx with %s: the gateway drains too, although npx may have ended before it',
  async (shell) => {
    expect(await sigterm('npx', ['headgate'], { npm_config_script_shell: shell })).toEqual(DRAINED);
  },
);
