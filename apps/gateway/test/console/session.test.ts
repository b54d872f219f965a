import { checkPage } from 'headgate-testbed/page-checks';
import { expect, test } from 'vitest';
import { TOKENS } from '../support/admin.ts';
import { startConsole, VIEWS } from './support/console-gateway.ts';

const gateway = await startConsole();
const focused = () => document.activeElement?.textContent;

test.each(VIEWS)(
  'in %s colours, %d pixels wide, a person signs in with a token, and out again',
  async (colorScheme, width) => {
    const page = await gateway.newPage({ colorScheme, viewport: { width, height: 800 } });
    await page.goto(gateway.url);
    await page.waitForSelector('input:focus');
    await page.keyboard.type(' ');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.fault >> text=Paste a token.');
    await checkPage(page, 'en');
    await page.keyboard.type('not a token of the config');
    await page.keyboard.press('Enter');
    expect(await page.textContent('[role=alert]')).toContain('token');
    // It has the focus again, and what was refused is gone.
    await page.waitForSelector('input:focus');
    await page.keyboard.type(` ${TOKENS.viewer} `);
    await page.keyboard.press('Enter');
    await page.waitForSelector('.person >> text=vera viewer');
    await page.click('text=Sign out');
    await page.waitForSelector('label >> text=Token');
    await page.reload();
    expect(await page.locator('label >> text=Token').count()).toBe(1);
    expect(
      await page.evaluate(() => Object.values(sessionStorage).concat(Object.values(localStorage)).join()),
    ).not.toContain(TOKENS.viewer);
  },
);

test('a link with a token signs in, and the address does not show the token', async () => {
  const page = await gateway.newPage();
  await page.goto(`${gateway.url}#token=${TOKENS.admin}`);
  await page.waitForSelector('.person >> text=ada admin');
  expect(page.url()).toBe(`${gateway.url}`);
  expect(await page.evaluate(() => history.length)).toBe(2);
});

test('a link with a token is taken in a tab that has the console already', async () => {
  const page = await gateway.newPage();
  await page.goto(gateway.url);
  await page.waitForSelector('label >> text=Token');
  await page.goto(`${gateway.url}#token=${TOKENS.admin}`);
  await page.waitForSelector('.person >> text=ada admin');
  expect(page.url()).toBe(gateway.url);
});

test('a link with another token asks before it replaces the session of the tab', async () => {
  const page = await gateway.newPage();
  await page.goto(`${gateway.url}#token=${TOKENS.viewer}`);
  await page.waitForSelector('.person >> text=vera viewer');
  const follow = () =>
    page.evaluate((token) => {
      location.hash = `#token=${token}`;
    }, TOKENS.admin);
  await follow();
  await page.click('text=Stay vera');
  await page.waitForSelector('text=The link that you opened', { state: 'detached' });
  expect(await page.textContent('.person')).toContain('vera viewer');
  expect(page.url()).toBe(gateway.url);
  await follow();
  await page.click('text=Use the token of the link');
  await page.waitForSelector('.person >> text=ada admin');
  // A session that is over is nothing to ask about.
  await page.evaluate((token) => sessionStorage.setItem('headgate-token', token), TOKENS.expired);
  await follow();
  await page.waitForSelector('.person >> text=ada admin');
  expect(await page.locator('text=The link that you opened').count()).toBe(0);
});

test('Back closes a window before it leaves the page, and does not open it again', async () => {
  const page = await gateway.open('#/', 'viewer');
  await page.click('nav a:text-is("Claims")');
  await page.waitForSelector('h1 >> text=Claims');
  for (let i = 0; i < 2; i++) {
    await page.click('text=Help');
    await page.waitForSelector('dialog[open]');
    await page.goBack();
    await page.waitForSelector('dialog', { state: 'detached' });
    expect(await page.evaluate(() => [location.hash, document.activeElement?.textContent])).toEqual([
      '#/claims',
      'Help',
    ]);
  }
  await page.click('text=Help');
  await page.keyboard.press('Escape');
  await page.waitForSelector('dialog', { state: 'detached' });
  await expect.poll(() => page.evaluate(() => history.state)).toBeNull();
  await page.goBack();
  await page.waitForSelector('h1 >> text=Overview');
});

test('an expired token ends the session, and the page says why', async () => {
  const page = await gateway.newPage();
  await page.goto(`${gateway.url}#token=${TOKENS.expired}`);
  expect(await page.textContent('[role=alert]')).toMatch(/expired/);
  expect(await page.locator('header').count()).toBe(0);
});

test('the keyboard reaches everything: skip, help, pages, colours', async () => {
  const page = await gateway.open('#/', 'viewer');
  await page.keyboard.press('?');
  await page.waitForSelector('dialog >> text=Search for an account');
  await page.keyboard.press('Escape');
  await page.waitForSelector('dialog', { state: 'detached' });
  await page.reload();
  await page.waitForSelector('h1 >> text=Overview');
  await page.keyboard.press('Tab');
  expect(await page.evaluate(focused)).toBe('Skip to the content');
  await page.keyboard.press('Enter');
  expect(await page.evaluate(() => document.activeElement?.id)).toBe('main');
  await page.focus('select[aria-label=Colours]');
  await page.keyboard.press('d');
  expect(await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme)).toBe('dark');
  await page.reload();
  await page.waitForSelector('h1 >> text=Overview');
  expect(await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme)).toBe('dark');
});

test('an address without a page says so, and leads back', async () => {
  const page = await gateway.open('#/nowhere/%zz', 'viewer');
  await page.waitForSelector('h1 >> text=No such page');
  await page.click('main >> text=overview');
  await page.waitForSelector('h1 >> text=Overview');
  await expect.poll(() => page.evaluate(focused)).toBe('Overview');
});
