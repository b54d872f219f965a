import { checkPage } from 'headgate-testbed/page-checks';
import type { Page } from 'playwright-core';
import { afterEach, describe, expect, test } from 'vitest';
import type { LinkFlow } from '../../src/providers/link-flow.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { startApplicationSite } from '../support/application-site.ts';
import { startBrowser } from '../support/browser-pages.ts';
import { freePort } from '../support/free-port.ts';
import { linkMaker } from '../support/links.ts';
import { loadMessenger, startMessenger } from '../support/messenger.ts';
import { startService } from '../support/service.ts';
import { SignInSite, signInFlow } from '../support/sign-in-site.ts';

const site = await SignInSite.start();
const messenger = await startMessenger();
let isDown = false;
const signIn = signInFlow(site) as LinkFlow;
const google: Provider = {
  ...{ name: 'google', title: 'Google', supports: new Set(['emails']) },
  link: { ...signIn, begin: async (context) => (isDown ? Promise.reject(new Error('down')) : signIn.begin(context)) },
};
const plugins = await loadMessenger(messenger);
const { url, application } = await startService(
  { PORT: await freePort(), TRUSTED_PROXIES: 'loopback' },
  { providers: [google, ...plugins] },
);
const { token } = await application();

const { callback, returned } = await startApplicationSite();
const newPage = await startBrowser();
const createLink = linkMaker(url, token, { providers: 'google', redirect_uri: callback, state: 'u42' });
afterEach(() => {
  isDown = false;
  messenger.scanned = false;
});

let accounts = 0;
const newAccount = (): string => `ann${++accounts}@away.test`;
const goAway = (page: Page): Promise<void> => page.click('text=Go to the provider');
const allow = async (page: Page, account = newAccount()): Promise<void> => {
  await page.fill('[name=account]', account);
  await page.click('text=Allow');
};
const expectText = async (page: Page, text: string): Promise<void> => void (await page.waitForSelector(`text=${text}`));

const SUCCESS = { account_id: expect.stringMatching(/^acc_/), provider: 'google', state: 'u42' };

describe.each([
  ['with script', true],
  ['without script', false],
])('%s', (_, javaScriptEnabled) => {
  test('a user signs in at the provider’s own site, after a denial', async () => {
    const page = await newPage({ javaScriptEnabled });
    await page.goto(await createLink());
    await goAway(page);
    await expectText(page, 'The own site of the provider');
    await page.click('text=Deny');
    await expectText(page, 'You did not allow the access.');
    await page.waitForSelector('.summary:focus');
    await goAway(page);
    await allow(page);
    expect(await returned(page)).toEqual(SUCCESS);
  });

  test('a user cancels after a denial', async () => {
    const page = await newPage({ javaScriptEnabled });
    await page.goto(await createLink());
    await goAway(page);
    await page.click('text=Deny');
    await page.click('text=Cancel and return to Test');
    expect(await returned(page)).toMatchObject({ error_type: 'errors/operation_canceled' });
  });

  test('a user links a messenger by a captcha and a code', async () => {
    const page = await newPage({ javaScriptEnabled });
    await page.goto(await createLink({ providers: 'telegram' }));
    await page.fill('[name=number]', newAccount());
    await page.click('main button');
    await page.fill('[name=letters]', messenger.letters);
    await page.click('main button');
    await page.fill('[name=code]', messenger.code);
    await page.click('main button');
    expect(await returned(page)).toMatchObject({ provider: 'telegram' });
  });
});

test('a user scans a QR code, and the page goes on by itself', async () => {
  const page = await newPage();
  await page.goto(await createLink({ providers: 'telegram' }));
  await page.click('main button');
  await expectText(page, 'Scan the code');
  messenger.scanned = true;
  expect(await returned(page)).toMatchObject({ provider: 'telegram' });
});

test('the back button leads from the provider to the page, and the next try counts', async () => {
  const page = await newPage();
  await page.goto(await createLink());
  await goAway(page);
  await expectText(page, 'The own site of the provider');
  await page.goBack();
  await expectText(page, 'Sign in at the provider');
  await goAway(page);
  await allow(page);
  expect(await returned(page)).toEqual(SUCCESS);
  await page.goBack();
  await page.goBack();
  await expectText(page, 'Your account is linked');
});

test('two clicks lead away once', async () => {
  const page = await newPage();
  await page.goto(await createLink());
  await page.dblclick('text=Go to the provider');
  await allow(page);
  expect(await returned(page)).toEqual(SUCCESS);
});

test('of two tabs, the slower one ends in the application as well', async () => {
  const page = await newPage();
  const link = await createLink();
  await page.goto(link);
  const tab = await page.context().newPage();
  await tab.goto(link);
  await goAway(page);
  await goAway(tab);
  await allow(page);
  const result = await returned(page);
  await allow(tab);
  expect(await returned(tab)).toEqual(result);
});

test('an account is reconnected, after a try with another one', async () => {
  const account = newAccount();
  const page = await newPage();
  await page.goto(await createLink());
  await goAway(page);
  await allow(page, account);
  const { account_id } = await returned(page);
  await page.goto(await createLink({ account_id }));
  await goAway(page);
  await allow(page, 'other@away.test');
  await expectText(page, 'This is another account');
  await page.click('text=Try again');
  await goAway(page);
  await allow(page, account);
  expect(await returned(page)).toEqual({ ...SUCCESS, account_id });
});

test('a link that was opened at localhost continues there', async () => {
  const page = await newPage();
  await page.goto((await createLink()).replace('127.0.0.1', 'localhost'));
  await goAway(page);
  await page.click('text=Deny');
  await expectText(page, 'You did not allow the access.');
  expect(new URL(page.url()).hostname).toBe('localhost');
});

test('a browser that has not opened the link sees nothing of the account', async () => {
  const page = await newPage();
  await page.goto(await createLink());
  await goAway(page);
  const back = site.allow(page.url(), newAccount());
  const stranger = await newPage();
  await stranger.goto(back);
  await expectText(stranger, 'We cannot continue this sign-in');
});

describe.each([
  ['en', 'light', 1280],
  ['de', 'dark', 320],
  // A window of 1280 pixels, enlarged to 200 %.
  ['en', 'dark', 640],
] as const)('in %s, %s, %i pixels wide', (language, colorScheme, width) => {
  test('axe finds nothing, and no page scrolls sideways', async () => {
    const viewport = { width, height: 700 };
    const page = await newPage({ bypassCSP: true, colorScheme, locale: language, viewport, reducedMotion: 'reduce' });
    const seen: string[] = [];
    const check = async (): Promise<void> => void seen.push(await checkPage(page, language));
    const global = { allow_user_proxy_override: true };
    await page.goto(await createLink({ config: { global } }));
    await check();
    await page.click('main button');
    await page.click('text=Deny');
    await page.waitForSelector('.summary');
    await check();
    await page.click('main button');
    await page.goto(site.allow(page.url(), newAccount()));
    await returned(page);
    await page.goto(await createLink({ providers: 'telegram' }));
    await check();
    await page.fill('[name=number]', '+49 30 901820');
    await page.click('main button');
    await page.waitForSelector('[name=letters]');
    await check();
    await page.goto(await createLink({ providers: 'telegram' }));
    await page.click('main button');
    await page.waitForSelector('img');
    await check();
    isDown = true;
    await page.goto(await createLink());
    await check();
    await page.goto(`${url}/auth/callback?state=x`);
    await check();
    expect(new Set(seen).size).toBe(6);
  });
});
