/** The page Shadow. */

import { checkPage } from 'headgate-testbed/page-checks';
import { afterEach, expect, test } from 'vitest';
import { CHATS, EMAILS, LIMITS, startConsole, VIEWS } from './support/console-gateway.ts';
import { pressAt, tabTo, typeInto } from './support/keyboard.ts';

const gateway = await startConsole();
const CANDIDATE = { default: { allMethods: ['1/1m'] } };
const put = (limits: unknown) => gateway.admin('PUT', '/v1/shadow', { json: { limits, reason: 'INC-7' } });
const state = async () => JSON.parse((await gateway.admin('GET', '/v1/shadow')).text);
const limitOf = async (query: string) => JSON.parse((await gateway.admin('GET', `/v1/limit?${query}`)).text);

afterEach(async () => {
  await gateway.admin('DELETE', '/v1/shadow');
  await gateway.admin('DELETE', '/v1/limit');
});

test.each(VIEWS)(
  'in %s colours, %d pixels wide, it shows whom the candidate would reject, and nobody else a button',
  async (colorScheme, width) => {
    const page = await gateway.open('#/shadow', 'viewer', { colorScheme, viewport: { width, height: 800 } });
    await page.waitForSelector('text=No candidate runs.');
    await put(CANDIDATE);
    const account = `acc_${width === 320 ? 1 : 2}`;
    await gateway.send(account, 3, CHATS);
    const matrix = page.locator('section[aria-labelledby=matrix] tbody');
    await expect.poll(() => matrix.innerText()).toMatch(/accept\s+1 33.3 %\s+2 66.7 %\s+reject\s+0 0 %\s+0 0 %/);
    expect(await page.innerText('section[aria-labelledby=matrix]')).toContain('that run it: 1 of 1 process.');
    expect(await page.innerText('section[aria-labelledby=by-route] tbody')).toMatch(
      new RegExp(`${CHATS}\\s+1\\s+2\\s+0\\s+0\\s+0`),
    );
    expect(await page.innerText('section[aria-labelledby=newly-rejected] tbody')).toMatch(
      new RegExp(`${account}\\s+2\\s+${CHATS}\\s+All methods`),
    );
    const { name } = JSON.parse((await gateway.admin('GET', '/v1/instances')).text).instances[0];
    for (const part of ['by-route', 'newly-rejected'])
      expect(await page.innerText(`section[aria-labelledby=${part}]`)).toContain(`Only this gateway: ${name}, since`);
    expect(await page.innerText('section[aria-labelledby=candidate]')).toMatch(/From\s+ada INC-7/);
    expect(await page.locator('main').getByRole('button').count()).toBe(0);
    expect(await checkPage(page, 'en')).toBe('Shadow');
  },
);

test('by keyboard: an operator starts a candidate, sees its faults, and stops it', async () => {
  const page = await gateway.open('#/shadow');
  await pressAt(page, 'Start…');
  const limits = page.locator('dialog textarea');
  // It begins with the limits of now.
  await expect.poll(() => limits.inputValue()).toContain('"5/1m"');
  await tabTo(page, 'Limits');
  await typeInto(page, 'Reason', 'INC-12');
  await limits.focus();
  const type = async (text: string) => {
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.type(text);
    await pressAt(page, 'Start');
  };
  await type('{');
  await page.waitForSelector('.fault >> text=This is not JSON');
  await limits.focus();
  await type('{"default":{"allMethods":["2 a minute"]}}');
  await page.waitForSelector('[role=alert] >> text=/limits.default.allMethods.*got "2 a minute"/');
  await checkPage(page, 'en');
  expect((await state()).candidate).toBeNull();
  await limits.focus();
  await type(JSON.stringify(CANDIDATE));
  await page.waitForSelector('text=The candidate runs.');
  expect((await state()).candidate).toMatchObject({ sample: 1, store: 'same', by: 'olaf' });
  await pressAt(page, 'Stop…');
  await tabTo(page, 'Reason');
  await page.keyboard.type('INC-12');
  await page.keyboard.press('Enter');
  await page.waitForSelector('text=The candidate has ended.');
  await page.waitForSelector('text=No candidate runs.');
  expect((await state()).candidate).toBeNull();
});

test('by keyboard: an operator promotes a candidate, after a preview and a confirmation', async () => {
  await put({ ...LIMITS, default: { allMethods: ['9/1m'] } });
  await gateway.send('acc_3', 1);
  const page = await gateway.open('#/shadow');
  await pressAt(page, 'Promote…');
  await page.waitForSelector('dialog td >> text=9/1m');
  expect(await page.innerText('dialog tbody')).toMatch(/default, all methods\s+100\/1m\s+9\/1m/);
  // The table scrolls sideways, and must not shrink to nothing in the column of the dialog.
  expect((await page.locator('dialog .wide').first().boundingBox())?.height).toBeGreaterThan(40);
  await page.waitForSelector('dialog >> text=/times less/');
  await checkPage(page, 'en');
  await pressAt(page, 'Promote');
  // The browser asks for the tick.
  expect(await page.evaluate(() => document.activeElement?.matches('[type=checkbox]:invalid'))).toBe(true);
  expect((await limitOf('')).adjusted).toBeNull();
  await page.keyboard.press('Space');
  await tabTo(page, 'Reason');
  await page.keyboard.type('INC-12');
  await page.keyboard.press('Enter');
  await page.waitForSelector('text=1 limit changed. 1 of 1 processes obey. The candidate has ended.');
  expect((await limitOf('')).adjusted).toMatchObject({ windows: ['9/1m'], by: 'olaf', reason: 'INC-12' });
  expect((await state()).candidate).toBeNull();
});

test('if a limit was changed meanwhile, nothing is promoted, and the candidate may go on', async () => {
  await put({ ...LIMITS, providers: { linkedin: { ...LIMITS.providers.linkedin, routes: { [EMAILS]: ['6/1m'] } } } });
  const page = await gateway.open('#/shadow');
  const promote = async () => {
    await page.click('text=Promote…');
    await page.waitForSelector('dialog form');
    await page.getByLabel('The candidate then').selectOption('go-on');
    await page.getByLabel('Reason').fill('INC-12');
  };
  await promote();
  const query = new URLSearchParams({ provider: 'linkedin', route: EMAILS });
  await gateway.admin('PUT', `/v1/limit?${query}`, { json: { windows: ['4/1m'] } });
  const press = () => page.locator('dialog').getByRole('button', { name: 'Promote' }).click();
  await press();
  await page.waitForSelector('dialog >> text=Close this window and open it again');
  expect((await limitOf(String(query))).effective).toEqual(['4/1m']);
  await page.keyboard.press('Escape');
  await page.waitForSelector('dialog', { state: 'detached' });
  await expect.poll(async () => (await state()).promotion.changes.length).toBeGreaterThan(0);
  await page.reload();
  await promote();
  await press();
  await page.waitForSelector('text=/processes obey. The candidate goes on/');
  expect((await limitOf(String(query))).effective).toEqual(['6/1m']);
  expect((await state()).candidate).not.toBeNull();
});
