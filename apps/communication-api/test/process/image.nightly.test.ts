import { execFile, execFileSync } from 'node:child_process';
import { chownSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { clientOf } from '../support/client.ts';
import { freePort } from '../support/free-port.ts';
import { buildImage, type Image, installedPackages } from '../support/image.ts';
import { runProcess } from '../support/service-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

let image: Image;
beforeAll(() => {
  image = buildImage();
});

/** A path of the image, here. */
const at = (path: string): string => join(image.root, path);

test('the Dockerfile makes a service that is built, with the template of its database', () => {
  const [node, ...args] = image.entrypoint;
  expect([node, image.command]).toEqual(['node', ['start']]);
  for (const path of [args.at(-1) ?? '', '/app/apps/communication-api/dist/template.tar.gz', '/app/LICENSE'])
    expect(existsSync(at(path)), path).toBe(true);
  expect(image.skipped).toEqual([expect.stringMatching(/^rm -rf \/usr\/local\/lib\/node_modules /)]);
});

test('what is installed is what the SBOM lists, and nothing that only tests need', () => {
  const { components } = JSON.parse(readFileSync(at('/app/sbom.json'), 'utf8')) as {
    components: readonly { readonly name: string; readonly version: string }[];
  };
  const listed = components.map(({ name, version }) => `${name}@${version}`);
  const installed = installedPackages(at('/app'));
  expect(listed.filter((each) => !each.startsWith('communication-api@')).sort()).toEqual(installed);
  expect(installed.filter((each) => /^(vitest|typescript|playwright-core|esbuild)@/.test(each))).toEqual([]);
  expect(installed.length).toBeGreaterThan(100);
  expect(existsSync(at('/app/apps/communication-api/src'))).toBe(false);
});

test('it runs as a user that is not root and can write to its data and to /tmp only', async () => {
  const [, ...args] = image.entrypoint;
  const tmp = temporaryFolder();
  if (image.owner !== undefined) chownSync(tmp, image.owner.uid, image.owner.gid);
  const adminPort = await freePort();
  const environment = {
    ...image.env,
    ...{ HOST: '127.0.0.1', PORT: '0', ADMIN_HOST: '127.0.0.1', ADMIN_PORT: adminPort },
    ...{ DATA_DIR: at(image.env.DATA_DIR ?? ''), TMPDIR: tmp },
  };
  const main = at(args.at(-1) ?? '');
  expect(statSync(main).mode & 0o222).toBe(0);
  const { ready, printed, child, exit } = runProcess([...image.command], environment, args.slice(0, -1), {
    main,
    owner: image.owner,
  });
  const url = await ready();
  const [token = ''] = /ck_svc_dev_\w+/.exec(printed.out) ?? [];
  const [account_id = ''] = /acc_\w{26}/.exec(printed.out) ?? [];
  const email = { account_id, to: [{ identifier: 'ann@mock.test' }], body: 'Hello' };
  expect((await clientOf(url, token)('POST', '/api/v1/emails', email)).status).toBe(201);
  const attachment = new FormData();
  attachment.set('account_id', account_id);
  attachment.set('to', '[{"identifier":"ann@mock.test"}]');
  attachment.set('body', 'Hello');
  attachment.set('attachments', new Blob([Buffer.alloc(3_000_000)]), 'a.bin');
  const sent = await fetch(`${url}/api/v1/emails`, {
    method: 'POST',
    headers: { 'x-api-key': token },
    body: attachment,
  });
  expect(sent.status).toBe(201);
  const css = /href="([^"]+\.css)"/.exec(await (await fetch(`${url}/docs`)).text())?.[1] ?? '';
  expect((await fetch(new URL(css, `${url}/docs/`))).status).toBe(200);

  const [program, ...check] = image.health.map((each) => each.replace(':9090', `:${adminPort}`));
  const health = () =>
    promisify(execFile)(process.execPath, check).then(
      () => 0,
      ({ code }: { code: number }) => code,
    );
  expect([program, await health()]).toEqual(['node', 0]);
  child.kill('SIGTERM');
  expect(await exit).toBe(0);
  expect(await health()).toBe(1);
  expect(readdirSync(tmp)).toEqual([]);
  expect(readdirSync(at('/data')).sort()).toEqual(['database', 'master.key']);
});

test('the user of the image cannot change its files', () => {
  const touch = (path: string) => () =>
    execFileSync('sh', ['-c', `: > "${join(at(path), 'x')}"`], { stdio: 'pipe', ...image.owner });
  for (const path of ['/app', '/app/apps/communication-api/dist', '/app/node_modules'])
    expect(touch(path), path).toThrow(/Permission denied/);
});
