/** Secrets of the environment and of files, in a real process. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startUpstream } from 'headgate-testbed/upstream';
import { expect, it } from 'vitest';
import { configOf, runHeadgate, scratchFolder, startGateway, writeConfig } from '../support/gateway.ts';

it('keys are read from a variable and from a file, and are never printed', async () => {
  const upstream = await startUpstream();
  const file = join(scratchFolder(), 'token');
  writeFileSync(file, 'token-of-a-file\n');
  const keys = [
    { token: { env: 'HG_TOKEN' }, application: 'app_1' },
    { token: { file }, application: 'app_1' },
  ];
  const gateway = await startGateway(configOf(upstream.url, { keys }), [], { HG_TOKEN: 'token-of-a-variable' });
  for (const token of ['token-of-a-variable', 'token-of-a-file']) {
    expect((await gateway.ask('GET', '/api/v1/open', { 'x-api-key': token })).status).toBe(200);
  }
  expect((await gateway.stop()).code).toBe(0);
  expect(gateway.output()).not.toMatch(/token-of-a/);
});

it.each(['serve', 'check'])('%s: exit 2 if a variable is not set, with its place and its name', async (command) => {
  const config = writeConfig(configOf('http://127.0.0.1:9', { store: { env: 'HG_NOT_SET' } }));
  const { code, stderr } = await runHeadgate([command, '--config', config]);
  expect(code).toBe(2);
  expect(stderr).toContain('store: the environment variable HG_NOT_SET is not set');
});
