import { NIGHTLY } from 'headgate-testbed/nightly';
import { checkPage } from 'headgate-testbed/page-checks';
import type { Page } from 'playwright-core';
import { afterEach, describe, expect, test } from 'vitest';
import type { LinkFlow } from '../../src/providers/link-flow.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { startApplicationSite } from '../support/application-site.ts';
import { startBrowser } from '../support/browser-pages.ts';
import { freePort } from '../support/free-port.ts';
import { linkMaker } from '../support/links.ts';
import { secret } from '../support/secret.ts';
import { startService } from '../support/service.ts';

const MINUTE = 60_000;

const words = (text: string) => ({ en: text, de: text });
const codes: LinkFlow = {
  begin: async () => ({}),
  stepOf: () => ({
    kind: 'wait',
    name: 'scan',
    title: words('Scan the code'),
    everySeconds: 60,
    image: { url: 'data:image/gif;base64,R0lGODlhAQABAAAAACw=', description: words('QR code') },
  }),
  submit: async (state) => ({ kind: 'next', state }),
};
const NAMES = ['linkedin', 'whatsapp', 'google', 'outlook', 'imap', 'telegram'] as const;
const providers = NAMES.map(
  (name): Provider => ({ name, title: `Provider ${name}`, supports: new Set(['messaging']), link: codes }),
);

let skew = 0;
const { url, application, rooms } = await startService(
  { PORT: await freePort(), TRUSTED_PROXIES: 'loopback' },
  { clock: () => Date.now() + skew, providers },
);
const { id: applicationId, token } = await application();

const { callback, returned } = await startApplicationSite();
const newPage = await startBrowser();
const createLink = linkMaker(url, token, { providers: 'mock', redirect_uri: `${callback}?x=1`, state: 'u42' });
afterEach(() => {
  skew = 0;
});

const go = (page: Page) => page.click('main .card button[type=submit]');
let mailboxes = 0;

interface Login {
  readonly address?: string;
  readonly password?: string;
  readonly behaviour?: string;
  readonly sync?: string;
}

async function logIn(page: Page, login: Login = {}): Promise<void> {
  const { address = `b${++mailboxes}@mock.test`, password = secret(), behaviour, sync } = login;
  await page.fill('[name=address]', address);
  await page.fill('[name=password]', password);
  if (behaviour !== undefined) await page.check(`[value=${behaviour}]`);
  if (sync !== undefined) await page.fill('[name=sync]', sync);
  await go(page);
}

const SUCCESS = { x: '1', account_id: expect.stringMatching(/^acc_/), provider: 'mock', state: 'u42' };

describe.each([
  ['with script', true],
  ['without script', false],
])('%s', (_, javaScriptEnabled) => {
  test('a user comes through a wrong password, a code and the sync to the callback', async () => {
    const page = await newPage({ javaScriptEnabled });
    await page.goto(await createLink({ config: { global: { wait_initial_sync: true } } }));
    await logIn(page, { password: 'wrong' });
    await expectText(page, '.summary', 'The address or the password is wrong.');
    await page.waitForSelector('.summary:focus');
    expect(await page.inputValue('[name=password]')).toBe('');
    await logIn(page, { behaviour: 'code', sync: '60' });
    await page.fill('[name=code]', '1');
    await go(page);
    await expectText(page, '.summary', 'The code is not correct.');
    await page.fill('[name=code]', '123456');
    await go(page);
    await expectText(page, 'h1', 'Your account is being prepared');
    skew = MINUTE;
    expect(await returned(page)).toEqual(SUCCESS);
    await page.goBack();
    await expectText(page, 'h1', 'Your account is linked');
  });

  test('a user cancels', async () => {
    const page = await newPage({ javaScriptEnabled });
    await page.goto(await createLink());
    await page.click('text=Cancel and return to Test');
    expect(await returned(page)).toMatchObject({ error_type: 'errors/operation_canceled', state: 'u42' });
  });

  test('a user searches for a provider', async () => {
    const page = await newPage({ javaScriptEnabled });
    await page.goto(await createLink({ providers: '*' }));
    await page.fill('#search', 'whats');
    if (!javaScriptEnabled) await page.click('text=Search >> nth=-1');
    await page.waitForFunction(
      () =>
        [...document.querySelectorAll<HTMLElement>('.providers li')].filter((row) => row.offsetParent !== null)
          .length === 1,
    );
    await page.click('text=Provider whatsapp');
    await expectText(page, 'h1', 'Scan the code');
  });
});

test('the back button leads to the current step, and another provider can be chosen', async () => {
  const page = await newPage();
  await page.goto(await createLink({ providers: ['mock', 'imap'] }));
  await page.click('text=Provider imap');
  await expectText(page, 'h1', 'Scan the code');
  await page.goBack();
  await expectText(page, 'h1', 'Scan the code');
  await page.click('text=Choose another provider');
  await expectText(page, 'h1', 'Choose your provider');
  await page.click('.providers >> text=Mock');
  await logIn(page);
  expect(await returned(page)).toEqual(SUCCESS);
  await page.goBack();
  await expectText(page, 'h1', 'Your account is linked');
  await page.click('a.button');
  expect(await returned(page)).toEqual(SUCCESS);
});

test('two clicks send a form once', async () => {
  const page = await newPage();
  await page.goto(await createLink());
  let posts = 0;
  page.on('request', (request) => {
    if (request.method() === 'POST') posts++;
  });
  await page.fill('[name=password]', secret());
  await page.fill('[name=address]', `b${++mailboxes}@mock.test`);
  await page.dblclick('main .card button[type=submit]');
  expect(await returned(page)).toEqual(SUCCESS);
  expect(posts).toBe(1);
});

test('of two tabs, the slower one sees that the account is linked; another browser, that the link is used', async () => {
  const page = await newPage();
  const link = await createLink();
  await page.goto(link);
  const tab = await page.context().newPage();
  await tab.goto(link);
  const stranger = await newPage();
  await stranger.goto(link);
  await logIn(page);
  const result = await returned(page);
  await logIn(tab);
  expect(await returned(tab)).toEqual(result);
  await logIn(stranger);
  await expectText(stranger, 'h1', 'This link was already used');
});

test('a link that expires midway says what to do', async () => {
  const page = await newPage();
  await page.goto(await createLink());
  skew = 11 * MINUTE;
  await logIn(page);
  await expectText(page, 'h1', 'This link has expired');
  await expectText(page, '.lead p', 'Go back to Test and start again.');
});

test('an account is reconnected, after a try with another mailbox', async () => {
  const address = `b${++mailboxes}@mock.test`;
  const page = await newPage();
  await page.goto(await createLink());
  await logIn(page, { address });
  const { account_id } = await returned(page);
  await page.goto(await createLink({ account_id }));
  await logIn(page, { address: 'other@mock.test' });
  await expectText(page, 'h1', 'This is another account');
  await page.click('text=Try again');
  expect(await page.inputValue('[name=address]')).toBe(address);
  await logIn(page, { address });
  expect(await returned(page)).toEqual({ ...SUCCESS, account_id });
  expect(await rooms.accounts.find(applicationId, account_id ?? '')).toMatchObject({ status: 'running' });
});

test('an account that is linked already and a restricted one lead to the callback', async () => {
  const address = `b${++mailboxes}@mock.test`;
  const page = await newPage();
  await page.goto(await createLink());
  await logIn(page, { address });
  const { account_id } = await returned(page);
  const link = await createLink();
  await page.goto(link);
  await logIn(page, { address });
  expect(await returned(page)).toMatchObject({ error_type: 'api/already_exists', error_detail: account_id });
  await page.goto(link);
  await logIn(page, { behaviour: 'restricted' });
  expect(await returned(page)).toMatchObject({ error_type: 'api/restricted_account' });
});

test('no page needs anything from elsewhere, and the browser blocks nothing of ours', async () => {
  const page = await newPage();
  const faults: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text());
  });
  const hosts = new Set<string>();
  page.on('request', (request) => hosts.add(new URL(request.url()).host));
  await page.goto(await createLink({ config: { global: { wait_initial_sync: true } } }));
  await logIn(page, { sync: '2' });
  await returned(page);
  hosts.delete(new URL(callback).host);
  hosts.delete('');
  expect([...hosts]).toEqual([new URL(url).host]);
  expect(faults.filter((fault) => !fault.includes('favicon'))).toEqual([]);
});

const NIGHTLY_VIEWS = [
  ['en', 'light', 1280],
  // A window of 1280 pixels, enlarged to 200 %.
  ['en', 'dark', 640],
] as const;

describe.each([['de', 'dark', 320], ...(NIGHTLY ? NIGHTLY_VIEWS : [])] as const)(
  'in %s, %s, %i pixels wide',
  (language, colorScheme, width) => {
    test('axe finds nothing on any page, and none scrolls sideways', async () => {
      const page = await newPage({
        bypassCSP: true,
        colorScheme,
        locale: language,
        viewport: { width, height: 700 },
        reducedMotion: 'reduce',
      });
      const seen: string[] = [];
      const check = async (): Promise<void> => void seen.push(await checkPage(page, language));
      const global = { allow_user_proxy_override: true, allow_user_country_override: true, wait_initial_sync: true };
      await page.goto(await createLink({ providers: '*' }));
      await check();
      await page.click('.providers >> text=linkedin');
      await check();
      const link = await createLink({ config: { global } });
      await page.goto(link);
      await page.click('summary');
      await check();
      await page.fill('[name=_proxy_host]', 'a b');
      await logIn(page, { address: 'x', password: '' });
      await page.waitForSelector('.summary');
      await check();
      await page.fill('[name=_proxy_host]', '');
      await logIn(page, { behaviour: 'code', sync: '60' });
      await page.waitForSelector('[name=code]');
      await check();
      await page.fill('[name=code]', '123456');
      await go(page);
      await page.waitForSelector('progress');
      await check();
      skew = 40_000;
      await page.waitForSelector('#leave:not([hidden])');
      await check();
      skew = 61_000;
      const { account_id } = await returned(page);
      skew = 0;
      await page.goBack();
      skew = 61_000;
      await page.goto(link);
      await page.waitForSelector('a.button');
      await check();
      const reconnect = await createLink({ account_id });
      await page.goto(reconnect);
      await logIn(page, { address: 'other@mock.test' });
      await page.waitForSelector('.mark');
      await check();
      await page.click('.aside form:last-child button');
      await returned(page);
      await page.goto(reconnect);
      await check();
      await page.goto(`${url}/auth/l/nothing`);
      await check();
      skew = 11 * MINUTE;
      await page.goto(await createLinkThatHasExpired());
      await check();
      expect(new Set(seen).size).toBeGreaterThanOrEqual(9);
    });
  },
);

/** The clock must be ahead. */
const createLinkThatHasExpired = async (): Promise<string> => {
  const ahead = skew;
  skew = 0;
  const link = await createLink();
  skew = ahead;
  return link;
};

async function expectText(page: Page, selector: string, text: string): Promise<void> {
  await page.waitForSelector(`${selector} >> text=${text}`);
  expect(await page.textContent(selector)).toContain(text);
}
