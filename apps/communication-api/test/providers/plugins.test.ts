import { execFile } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, describe, expect, test } from 'vitest';
import { runCli } from '../../src/cli/cli.ts';
import type { LinkStep } from '../../src/providers/link-flow.ts';
import { loadPlugins } from '../../src/providers/plugins.ts';
import { stepFaultsOf } from '../../src/providers/provider-faults.ts';
import { freePort } from '../support/free-port.ts';
import { loadMessenger, startMessenger } from '../support/messenger.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { PlainBrowser } from '../wizard/plain-browser.ts';

const APP = fileURLToPath(new URL('../..', import.meta.url));
const words = (text: string) => ({ en: text, de: text });

describe('a plug-in', () => {
  const folder = temporaryFolder();
  const good = `({ name: 'telegram', title: 'T', supports: new Set(['messaging']), link: { begin() {}, stepOf() {}, submit() {} } })`;
  let files = 0;
  const plugin = (source: string): string => {
    const name = `./plugin-${++files}.mjs`;
    writeFileSync(join(folder, name), source);
    return name;
  };

  test('is loaded from a path', async () => {
    const paths = [
      plugin(`export const createProvider = () => ${good}`),
      plugin(
        `export const createProvider = async ({ ProviderError }) => ({ ...${good}, name: 'linkedin', title: ProviderError.name })`,
      ),
    ];
    const loaded = await loadPlugins(paths, folder);
    expect(loaded.map(({ name, title }) => [name, title])).toEqual([
      ['telegram', 'T'],
      ['linkedin', 'ProviderError'],
    ]);
    expect((await loadPlugins([join(folder, paths[0] ?? '')])).map(({ name }) => name)).toEqual(['telegram']);
  });

  test.each([
    ['my-provider', undefined, /must be a path, such as \.\/my-provider\.mjs/],
    ['./missing.mjs', undefined, /cannot be loaded: Cannot find module/],
    ['one with a mistake', 'export const = 1', /cannot be loaded: /],
    ['one that throws', 'throw new Error("no licence")', /cannot be loaded: no licence/],
    [
      'one without createProvider',
      'export const provider = 1',
      /exports no function createProvider \(it exports provider\)/,
    ],
    [
      'one whose createProvider fails',
      'export const createProvider = () => { throw new Error("why") }',
      /createProvider\(\) failed: why/,
    ],
    ['one that returns nothing', 'export const createProvider = () => {}', /it is not an object/],
    [
      'one without anything',
      'export const createProvider = () => ({})',
      /name: must be one of[\s\S]*title: must be a text[\s\S]*supports: must be a Set[\s\S]*link, mail: at least one/,
    ],
    [
      'one with an unknown name',
      `export const createProvider = () => ({ ...${good}, name: 'myspace' })`,
      /name: must be one of .* \(it is "myspace"\)/,
    ],
    [
      'one with half a flow',
      `export const createProvider = () => ({ ...${good}, link: { begin() {} } })`,
      /link\.stepOf: must be a function\n {2}link\.submit: must be/,
    ],
    [
      'one with half a mail provider',
      `export const createProvider = () => ({ ...${good}, mail: {} })`,
      /mail\.isFenced: must be a function/,
    ],
  ])('%s is refused with the reason', async (name, source, reason) => {
    const path = source === undefined ? name : plugin(source);
    await expect(loadPlugins([path], folder)).rejects.toMatchObject({
      name: 'UserError',
      exitCode: 2,
      message: expect.stringMatching(
        new RegExp(`^PROVIDERS: ${path.replaceAll('.', '\\.')}: [\\s\\S]*${reason.source}`),
      ),
    });
  });

  test('two with one name are refused', async () => {
    const paths = [1, 2].map(() => plugin(`export const createProvider = () => ${good}`));
    await expect(loadPlugins(paths, folder)).rejects.toThrow(/another plug-in is named "telegram" as well/);
  });

  test('a start with a fault ends with 2 before it has made a database', async () => {
    const printed: string[] = [];
    const terminal = { out: () => undefined, error: (text: string) => void printed.push(text) };
    const DATA_DIR = join(folder, 'data');
    expect(await runCli(['start'], { PROVIDERS: './missing.mjs', DATA_DIR, LOG_LEVEL: 'silent' }, terminal)).toBe(2);
    expect(printed.join('')).toMatch(/^PROVIDERS: \.\/missing\.mjs: cannot be loaded/);
    expect(existsSync(DATA_DIR)).toBe(false);
  });
});

describe('a page of a plug-in', () => {
  const page: LinkStep = { kind: 'form', name: 'start', title: words('Start'), fields: [] };
  test.each<[string, Partial<Record<keyof LinkStep | 'fields' | 'everySeconds' | 'url' | 'button', unknown>>, RegExp]>([
    ['a name with spaces', { name: 'my page' }, /lower-case letters/],
    ['a title in one language', { title: { en: 'Start' } }, /title: must be a text in each language: en, de/],
    ['an intro that is a text', { intro: 'Hello' }, /intro: must be a text in each language/],
    ['an unknown kind', { kind: 'video' }, /kind: must be form, code, wait or away/],
    [
      'a picture from elsewhere',
      { image: { url: 'https://a.example/', description: words('x') } },
      /must begin with data:image/,
    ],
    ['a picture without words', { image: { url: 'data:image/png;base64,AA==' } }, /image\.description/],
    ['a page that waits too little', { kind: 'wait', everySeconds: 1 }, /everySeconds: must be 3 or more/],
    [
      'an address of another kind',
      { kind: 'away', url: 'ftp://a.example', button: words('Go') },
      /url: must be an https/,
    ],
    [
      'a field of the wizard itself',
      { fields: [{ kind: 'text', name: '_x', label: words('x') }] },
      /must begin with a letter/,
    ],
    [
      'two equal fields',
      { fields: [1, 2].map(() => ({ kind: 'text', name: 'x', label: words('x') })) },
      /another field has this name/,
    ],
    [
      'a field of an unknown kind',
      { fields: [{ kind: 'file', name: 'x', label: words('x') }] },
      /kind: must be one of text/,
    ],
  ])('cannot have %s', (_, change, fault) => {
    expect(stepFaultsOf(page)).toEqual([]);
    expect(stepFaultsOf({ ...page, ...change } as LinkStep)).toEqual([expect.stringMatching(fault)]);
  });
});

describe('the example', async () => {
  const messenger = await startMessenger();
  const providers = await loadMessenger(messenger);
  const { url, application, rooms } = await startService({ PORT: await freePort() }, { providers });
  const { id: applicationId, token } = await application();
  afterEach(() => {
    Object.assign(messenger, { scanned: false, broken: false });
  });

  const askForLink = (selection: string): Promise<Response> =>
    fetch(`${url}/v2/auth/link`, {
      method: 'POST',
      headers: { 'x-api-key': token, 'content-type': 'application/json' },
      body: JSON.stringify({
        providers: selection,
        expires_on: new Date(Date.now() + 60_000).toISOString(),
        redirect_uri: 'https://app.example/cb',
      }),
    });

  async function opened(): Promise<PlainBrowser> {
    const { link } = (await (await askForLink('telegram')).json()) as { link: string };
    const client = new PlainBrowser(url);
    await client.open(new URL(link).pathname);
    return client;
  }

  test('links an account by a captcha and a code', async () => {
    const client = await opened();
    expect([client.path, client.text]).toEqual(['/step/start', expect.stringContaining('Link your messenger')]);
    await client.submit('/step/start', { number: '+49 30 901820' });
    expect(client.path).toBe('/step/captcha');
    expect(client.page.html).toContain('alt="Distorted letters"');
    await client.submit('/step/captcha', { letters: 'none' });
    expect(client.text).toContain('Letters: This is not correct.');
    await client.submit('/step/captcha', { letters: messenger.letters });
    expect(client.path).toBe('/step/code');
    await client.submit('/step/code', { code: '1' });
    expect(client.text).toContain('This is not correct.');
    const callback = new URL((await client.submit('/step/code', { code: messenger.code })) ?? '');
    const account = await rooms.accounts.find(applicationId, callback.searchParams.get('account_id') ?? '');
    expect(account).toMatchObject({ provider: 'telegram', provider_user_id: 'user +49 30 901820', status: 'running' });
  });

  test('links an account by a QR code, while the page waits', async () => {
    const client = await opened();
    await client.submit('/step/start');
    expect(client.path).toBe('/step/scan');
    expect(client.page.html).toContain('data-repeat="3"');
    await client.submit('/step/scan');
    expect(client.path).toBe('/step/scan');
    messenger.scanned = true;
    expect(await client.submit('/step/scan')).toMatch(/^https:\/\/app\.example\/cb\?account_id=acc_/);
  });

  test('a messenger that fails is said on the page', async () => {
    const client = await opened();
    messenger.broken = true;
    await client.submit('/step/start', { number: '1' });
    expect(client.text).toContain('The provider did not answer as expected.');
  });

  test('the other providers without an official interface are refused, with what the operator can do', async () => {
    for (const name of ['linkedin', 'whatsapp', 'instagram']) {
      const answer = await askForLink(name);
      expect(answer.status).toBe(403);
      expect(await answer.json()).toMatchObject({
        type: 'errors/feature_not_subscribed',
        detail: expect.stringMatching(new RegExp(`no connector for ${name} .*the variable PROVIDERS names.*telegram`)),
      });
    }
  });

  test('is the one of apps/communication-api/docs/plugins.md', () => {
    const page = readFileSync(new URL('../../docs/plugins.md', import.meta.url), 'utf8');
    const [, shown] = /```js\n(\/\/ @ts-check\n.*?)```/s.exec(page) ?? [];
    expect(shown).toBe(readFileSync(join(APP, 'examples/messenger.mjs'), 'utf8'));
  });
});

test('plugin.d.ts is up to date; node scripts/plugin-types.mjs writes it', async () => {
  const folder = temporaryFolder();
  await promisify(execFile)(process.execPath, [join(APP, 'scripts/plugin-types.mjs'), folder]);
  expect(readFileSync(join(APP, 'plugin.d.ts'), 'utf8')).toBe(readFileSync(join(folder, 'plugin.d.ts'), 'utf8'));
});
