/** The page System. */

import { checkPage } from 'headgate-testbed/page-checks';
import { expect, test } from 'vitest';
import { startConsole, VIEWS } from './support/console-gateway.ts';
import { pressAt, tabTo, typeInto } from './support/keyboard.ts';

const SECRET = 'the-secret-of-fingerprints';
const gateway = await startConsole();

test.each(VIEWS)(
  'in %s colours, %d pixels wide, it shows the process, the keys and the config, without a secret',
  async (colorScheme, width) => {
    const page = await gateway.open('#/system', 'admin', { colorScheme, viewport: { width, height: 800 } });
    await page.waitForSelector('pre');
    await page.waitForSelector('td >> text=this process');
    await page.waitForSelector('td >> text=app_1');
    const { instance, version, startedAt } = JSON.parse((await gateway.admin('GET', '/v1/status')).text);
    const time = new Date(startedAt).toTimeString().slice(0, 8);
    const process = (await page.locator('section[aria-labelledby=process]').innerText()).replaceAll(/\s+/g, ' ');
    expect(process).toContain(`State serving Version ${version} Process ${instance} Started ${time} Store memory, ok`);
    const config = await page.locator('pre').innerText();
    expect(JSON.parse(config)).toEqual(JSON.parse((await gateway.admin('GET', '/v1/config')).text));
    expect(config).not.toContain(SECRET);
    expect(await checkPage(page, 'en')).toBe('System');
    await page.getByRole('button', { name: 'Drain …' }).click();
    await page.waitForSelector('dialog form');
    await checkPage(page, 'en');
  },
);

test('by keyboard only, an admin drains the process, and ends that', async () => {
  const readyz = async () => (await gateway.admin('GET', '/readyz', { as: undefined })).status;
  const page = await gateway.open('#/system', 'admin');
  await pressAt(page, 'Drain …');
  expect(await page.locator('dialog').innerText()).toMatch(
    /\/readyz of .+ will answer 503.*It accepts [\d.]+ requests per second now\. No other process with this store was heard of\./,
  );
  await tabTo(page, 'Reason');
  await page.keyboard.type('a new version');
  expect(await readyz()).toBe(200);
  await pressAt(page, 'Drain');
  await page.waitForSelector('dialog', { state: 'detached' });
  expect(await readyz()).toBe(503);
  await page.waitForSelector('.notice >> text=This gateway is draining');
  await expect
    .poll(() => gateway.lines())
    .toContainEqual(expect.objectContaining({ msg: 'drained', reason: 'a new version' }));
  // The focus is back on the button that opened the dialog.
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('End the draining …');
  await page.keyboard.press('Enter');
  await typeInto(page, 'Reason', 'it is warm');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.notice >> text=This gateway is draining', { state: 'detached' });
  expect(await readyz()).toBe(200);
});

test('an operator sees no button that drains', async () => {
  const page = await gateway.open('#/system', 'operator');
  await page.waitForSelector('td >> text=this process');
  expect(await page.locator('main').getByRole('button').allInnerTexts()).toEqual([]);
});
