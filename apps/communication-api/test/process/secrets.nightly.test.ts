import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { newToken } from '../../src/domain/key-token.ts';
import { clientOf, inDays } from '../support/client.ts';
import { secret } from '../support/secret.ts';
import { SecretFinder } from '../support/secret-finder.ts';
import { runProcess, runToEnd } from '../support/service-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { PlainBrowser } from '../wizard/plain-browser.ts';

test('no secret is in the output of the service, in its data or in its backup', async () => {
  const DATA_DIR = join(temporaryFolder(), 'data');
  const finder = new SecretFinder();
  const created = await runToEnd(['create-key', '--application', 'Shop'], { DATA_DIR });
  const token = created.out.trim();
  finder.add('key of the command line', token);
  const [, masterKey = ''] = /^k\w*:(.+)$/m.exec(readFileSync(join(DATA_DIR, 'master.key'), 'utf8')) ?? [];
  finder.add('master key', Buffer.from(masterKey, 'base64'));

  const service = runProcess(['start'], { DATA_DIR, LOG_LEVEL: 'debug' });
  const url = await service.ready();
  const wrongToken = newToken('service', 'development');
  finder.add('wrong key', wrongToken);
  const wrong = clientOf(url, wrongToken);
  expect((await wrong('GET', '/v2/accounts')).status).toBe(401);
  expect((await wrong('GET', `/v2/accounts?key=${wrongToken}`)).status).toBe(401);
  const call = clientOf(url, token);
  expect((await call('GET', `/v2/accounts?key=${token}`)).status).toBe(422);

  const key = await call('POST', '/v2/api-keys', { name: 'a', expires_at: inDays(1), access: { type: 'global' } });
  expect(key.status).toBe(200);
  finder.add('created key', key.body.api_key);
  const [linkProxy, wizardProxy, password] = [secret(), secret(), secret()];
  finder.add('proxy password of a link', linkProxy);
  finder.add('proxy password of the wizard', wizardProxy);
  finder.add('password of the wizard', password);
  const proxy = { protocol: 'socks5', host: 'p.example', port: 1080, username: 'u' };
  const link = async (config: object): Promise<string> => {
    const answer = await call('POST', '/v2/auth/link', {
      ...{ providers: 'mock', redirect_uri: 'https://app.example/cb', expires_on: inDays(1), config },
    });
    expect(answer.status).toBe(200);
    const path = new URL(answer.body.link).pathname;
    finder.add('link token', path.split('/').at(-1) ?? '');
    return path;
  };
  const accounts: string[] = [];
  for (const [config, entered] of [
    [{ mock: { custom_proxy: { ...proxy, password: linkProxy } } }, {}],
    [
      { global: { allow_user_proxy_override: true } },
      {
        ...{ _proxy_protocol: 'http', _proxy_host: 'p.example', _proxy_port: '1080', _proxy_username: 'u' },
        _proxy_password: wizardProxy,
      },
    ],
  ] as const) {
    const browser = new PlainBrowser(url);
    await browser.open(await link(config));
    const address = `me${accounts.length}@mock.test`;
    const login = { address, password, drafts: 'on', ...entered };
    const callback = await browser.submit('/step/login', login);
    accounts.push(new URL(callback ?? '').searchParams.get('account_id') ?? '');
    for (const [name, cookie] of browser.cookies) finder.add(`cookie ${name}`, cookie);
  }
  for (const account_id of accounts) {
    const shown = await call('GET', `/v2/accounts/${account_id}`);
    expect(shown.text).toContain('p.example');
    expect(finder.find(shown.text)).toEqual([]);
    const email = { account_id, to: [{ identifier: 'ann@example.com' }], body: 'Hello' };
    expect((await call('POST', '/api/v1/emails', email)).status).toBe(201);
  }
  const open = await call('POST', '/v2/auth/link', { providers: '*' });
  expect(open.status).toBe(422);
  await link({ mock: { custom_proxy: { ...proxy, password: linkProxy } } });

  service.child.kill('SIGTERM');
  expect(await service.exit).toBe(0);
  const { out, error } = service.printed;
  expect(out).toContain('"route":"/v2/auth/link"');
  expect(finder.find(out + error)).toEqual([]);
  expect(created.error).not.toContain(token);

  expect(await runToEnd(['backup'], { DATA_DIR })).toMatchObject({ code: 0 });
  const files = readdirSync(DATA_DIR, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'master.key')
    .map(({ parentPath, name }) => join(parentPath, name));
  const backups = files.filter((file) => file.endsWith('.tar.gz'));
  expect([backups.length, files.length > 100]).toEqual([1, true]);
  const filesWith = (wanted: SecretFinder): readonly string[] =>
    files.flatMap((file) => {
      const bytes = readFileSync(file);
      return wanted.find(file.endsWith('.gz') ? gunzipSync(bytes) : bytes).map((name) => `${file}: ${name}`);
    });
  expect(filesWith(finder)).toEqual([]);
  // What is stored openly is found, so a secret would be, too.
  const address = new SecretFinder();
  address.add('address', 'me0@mock.test');
  expect(filesWith(address)).toEqual(
    expect.arrayContaining([expect.stringContaining('/database/'), expect.stringContaining('/backups/')]),
  );
});
