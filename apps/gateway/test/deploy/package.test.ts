/** The package as npm publishes it: installed into an empty folder, started by each of its names, as `npx` starts it. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, send } from 'headgate-testbed/raw-http';
import { answer, startUpstream } from 'headgate-testbed/upstream';
import { beforeAll, describe, expect, it } from 'vitest';
import { packHouse } from '../../../../scripts/pack.mjs';
import { configOf, freePort, scratchFolder, TOKEN, writeConfig } from '../support/gateway.ts';

const folder = scratchFolder();
const inFolder = (path: string): string => join(folder, path);
const manifestOf = (name: string) => JSON.parse(readFileSync(inFolder(`node_modules/${name}/package.json`), 'utf8'));
let files: readonly string[];

beforeAll(() => {
  const [library, gateway] = ['.', 'apps/gateway'].map((house) => packHouse(house, folder));
  files = gateway?.files ?? [];
  const archives = [library, gateway].map((packed) => packed?.archive ?? '');
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', '--silent', ...archives], {
    cwd: folder,
    stdio: 'pipe',
  });
});

it('contains the process, its schema and the files to deploy and to watch it', () => {
  expect(files).toEqual(
    expect.arrayContaining([
      'LICENSE',
      'README.md',
      'dist/THIRD-PARTY-LICENSES.txt',
      'dist/headgate.cjs',
      'docs/config.schema.json',
      'docs/deploy/Dockerfile',
      'docs/deploy/helm/templates/headgate.yaml',
      'docs/grafana/headgate.json',
      'docs/prometheus/alerts.yml',
    ]),
  );
  expect(files.filter((file) => /^(?:src|test|bench|scripts)\/|\.env$|tls/.test(file))).toEqual([]);
});

it('needs exactly the version of the library that it was built with', () => {
  expect(manifestOf('headgate-gateway').dependencies.headgate).toBe(manifestOf('headgate').version);
  expect(manifestOf('headgate-gateway').devDependencies).toBeUndefined();
  // Everything else is in the bundle.
  expect(existsSync(inFolder('node_modules/ioredis'))).toBe(false);
});

describe.each(['headgate', 'headgate-gateway'])('the command %s', (name) => {
  const command = inFolder(`node_modules/.bin/${name}`);

  it('shows its version', () => {
    const shown = execFileSync(command, ['--version'], { encoding: 'utf8' });
    expect(shown.trim()).toBe(manifestOf('headgate-gateway').version);
  });

  it('serves a request, and stops at SIGTERM', async () => {
    const upstream = await startUpstream();
    upstream.behave(answer({ body: 'from the upstream' }));
    const [port, adminPort] = [await freePort(), await freePort()];
    const config = configOf(upstream.url, {
      listen: { host: '127.0.0.1', port },
      admin: { host: '127.0.0.1', port: adminPort },
    });
    const child = spawn(command, ['serve', '--config', writeConfig(config)], { stdio: 'ignore' });
    const exited = new Promise((resolve) => child.once('exit', (code) => resolve(code)));
    await eventually(
      () =>
        send(port, { path: '/healthz' }).then(
          ({ status }) => status === 200,
          () => false,
        ),
      'a 200',
    );
    const reply = await send(port, { path: '/api/v1/open', headers: { 'x-api-key': TOKEN } });
    expect({ status: reply.status, text: reply.text }).toEqual({ status: 200, text: 'from the upstream' });
    child.kill('SIGTERM');
    expect(await exited).toBe(0);
    await upstream.close();
  });
});
