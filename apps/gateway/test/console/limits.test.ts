/** The pages Limits and History of limits. */

import { checkPage } from 'headgate-testbed/page-checks';
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { CHATS, EMAILS, startConsole, VIEWS } from './support/console-gateway.ts';
import { chooseIn, pressAt, tabTo, typeInto } from './support/keyboard.ts';

const gateway = await startConsole();
/** An account of the config. */
const HTML = '<img src=x onerror=alert(1)>';
const EMAILS_OF_LINKEDIN = `provider linkedin, ${EMAILS}`;
const addressOf = (target: Record<string, string>) => `#/limits?${new URLSearchParams({ ...target, edit: '1' })}`;

const limitOf = async (target: Record<string, string>) =>
  JSON.parse((await gateway.admin('GET', `/v1/limit?${new URLSearchParams(target)}`)).text);
const put = (target: Record<string, string>, windows: string[], forMs?: number) =>
  gateway.admin('PUT', `/v1/limit?${new URLSearchParams(target)}`, {
    json: { windows, reason: 'INC-7', confirm: true, forMs },
  });
const dialogText = (page: Page) => page.locator('dialog').innerText();
const press = (page: Page, name: string) => page.getByRole('button', { name }).click();
const apply = async (page: Page) => {
  await page.getByLabel('Reason').fill('INC-12');
  await press(page, 'Apply');
};
const waitForText = (page: Page, text: string) => page.getByText(text).first().waitFor();

/** Opens the dialog of a limit by its address, with the text of its first window. */
async function openDialog(target: Record<string, string>, window: string): Promise<Page> {
  const page = await gateway.open(addressOf(target));
  await page.getByLabel('Window 1', { exact: true }).fill(window);
  return page;
}

describe.each(VIEWS)('in %s colours, %d pixels wide', (colorScheme, width) => {
  const options = { colorScheme, viewport: { width, height: 800 } };

  test('the list, its dialog with a preview and its faults, the history and the export have no fault of axe', async () => {
    await put({ account: 'acc_3', route: EMAILS }, ['4/1m'], 3_600_000);
    await gateway.send(HTML, 2);
    const page = await gateway.open('#/limits', 'operator', options);
    await waitForText(page, 'Changes end with the process');
    const row = page.locator('tr', { hasText: 'account acc_3' });
    expect(await row.innerText()).toMatch(/POST \/api\/v1\/emails\s+not set\s+4\/1m\s+4\/1m\s+ada INC-7\s+[\d:]+/);
    await checkPage(page, 'en');
    await press(page, `Change ${EMAILS_OF_LINKEDIN}`);
    await page.getByLabel('Window 1', { exact: true }).fill('3000/1m');
    await press(page, 'Preview');
    await waitForText(page, '600 times more');
    await checkPage(page, 'en');
    await page.keyboard.press('Escape');
    await press(page, `Change ${EMAILS_OF_LINKEDIN}`);
    await page.getByLabel('Window 1', { exact: true }).fill('3000');
    await press(page, 'Preview');
    await waitForText(page, 'a window is max/duration, such as "60/1m", got "3000"');
    await checkPage(page, 'en');
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'History' }).click();
    await waitForText(page, 'as in the config');
    const { at, until } = (await limitOf({ account: 'acc_3', route: EMAILS })).adjusted;
    const [atText, untilText] = [at, until].map((each) =>
      new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' }).format(new Date(each)),
    );
    const change = page.locator('tr', { hasText: 'account acc_3' }).first();
    expect(await change.innerText()).toMatch(new RegExp(`${atText}.*4/1m\\s+${untilText}`, 's'));
    expect(await change.getByRole('link').getAttribute('href')).toBe('#/accounts/acc_3');
    expect(await checkPage(page, 'en')).toBe('History of limits');
    await press(page, 'Export');
    await waitForText(page, '"linkedin": {');
    await checkPage(page, 'en');
  });
});

describe('by keyboard only', () => {
  test('an operator previews and makes a change, which the next request obeys, and resets it', async () => {
    const page = await gateway.open('#/limits?provider=linkedin');
    await page.waitForSelector('td >> text=provider linkedin');
    await pressAt(page, `Change ${EMAILS_OF_LINKEDIN}`);
    await page.waitForSelector('dialog h2:focus, dialog :focus');
    await typeInto(page, 'Window 1', '4/1m');
    await pressAt(page, 'Add a window');
    await expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).toBe('INPUT');
    await page.keyboard.type('2000/1d');
    await chooseIn(page, 'Ends', 'In 1 h');
    await pressAt(page, 'Preview');
    await page.waitForSelector('h3:focus >> text=Preview');
    expect(await dialogText(page)).toMatch(/Ends\s+[\w :,]*[\d:]+, then as in the config: 5\/1m/);
    expect(await dialogText(page)).toMatch(/Before\s+5\/1m\s+After\s+4\/1m, 2000\/1d/);
    expect((await limitOf({ provider: 'linkedin', route: EMAILS })).adjusted).toBeNull();
    await typeInto(page, 'Reason', 'INC-12');
    await page.keyboard.press('Enter');
    await waitForText(page, '1 of 1 processes obey.');
    await waitForText(page, 'The change ends with the process.');
    const { adjusted } = await limitOf({ provider: 'linkedin', route: EMAILS });
    expect(adjusted).toMatchObject({ windows: ['4/1m', '2000/1d'], by: 'olaf', reason: 'INC-12' });
    expect(Math.round((Date.parse(adjusted.until) - Date.parse(adjusted.at)) / 60_000)).toBe(60);
    expect(await gateway.send('acc_1', 5)).toEqual([200, 200, 200, 200, 429]);
    await pressAt(page, 'Done');
    const row = page.locator('tr', { hasText: EMAILS });
    await expect.poll(() => row.innerText()).toMatch(/4\/1m, 2000\/1d\s+4\/1m, 2000\/1d\s+olaf INC-12/);
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Change');
    await pressAt(page, `Reset ${EMAILS_OF_LINKEDIN}`);
    await pressAt(page, 'Preview');
    await page.waitForSelector('h3:focus >> text=Preview');
    expect(await dialogText(page)).toMatch(/Before\s+4\/1m, 2000\/1d\s+After\s+5\/1m/);
    await typeInto(page, 'Reason', 'INC-12');
    await page.keyboard.press('Enter');
    await waitForText(page, '1 of 1 processes obey.');
    expect((await limitOf({ provider: 'linkedin', route: EMAILS })).adjusted).toBeNull();
  });

  test('what was before is put back, with a preview', async () => {
    const target = { account: 'acc_2', route: EMAILS };
    await put(target, ['6/1m']);
    await put(target, ['7/1m']);
    const page = await gateway.open(`#/limits/history?${new URLSearchParams(target)}`);
    const { version } = (await limitOf(target)).adjusted;
    await pressAt(page, `Put this back: change ${version}, account acc_2, ${EMAILS}`);
    await page.waitForSelector('dialog form');
    expect(await page.getByLabel('Window 1', { exact: true }).inputValue()).toBe('6/1m');
    await pressAt(page, 'Preview');
    await page.waitForSelector('h3:focus >> text=Preview');
    expect((await limitOf(target)).adjusted.windows).toEqual(['7/1m']);
    await typeInto(page, 'Reason', 'INC-12');
    await page.keyboard.press('Enter');
    await waitForText(page, 'processes obey');
    expect((await limitOf(target)).adjusted.windows).toEqual(['6/1m']);
    await pressAt(page, 'Done');
    // The first change put something where there was nothing: that is a reset.
    await pressAt(page, `Put this back: change ${version - 1}, account acc_2, ${EMAILS}`);
    await page.waitForSelector('dialog form');
    expect(await page.getByLabel('New limit').inputValue()).toBe('reset');
    await page.keyboard.press('Escape');
    await page.waitForSelector('dialog', { state: 'detached' });
  });

  test('the history has pages', async () => {
    const target = { account: 'acc_3', route: CHATS };
    for (let max = 10; max <= 60; max++) await put(target, [`${max}/1m`]);
    const page = await gateway.open(`#/limits/history?${new URLSearchParams(target)}`);
    const newest = page.locator('tbody tr').first().locator('td').nth(5);
    await expect.poll(() => newest.allInnerTexts()).toEqual(['60/1m']);
    await pressAt(page, 'Older changes');
    await expect.poll(() => newest.allInnerTexts()).toEqual(['10/1m']);
    await pressAt(page, 'Newer changes');
    await expect.poll(() => newest.allInnerTexts()).toEqual(['60/1m']);
  });

  test('a limit that is not listed is set, and a name that the config does not have is refused', async () => {
    const page = await gateway.open('#/limits');
    await tabTo(page, 'Route (empty: all methods)');
    await page.keyboard.type(EMAILS);
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.type('acc_11');
    await pressAt(page, 'Set a limit');
    await typeInto(page, 'Window 1', '9/1m');
    await page.keyboard.press('Enter');
    await waitForText(page, 'the config has no such account: "acc_11", did you mean "acc_1"?');
    await page.keyboard.press('Escape');
    await page.waitForSelector('dialog', { state: 'detached' });
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.type('acc_1');
    await pressAt(page, 'Set a limit');
    await page.waitForSelector(`dialog h2 >> text=Limit: account acc_1, ${EMAILS}`);
  });
});

test('each window has its own fault beside it; the others stay', async () => {
  const page = await openDialog({ account: 'acc_1' }, '60/1m');
  for (const [i, text] of ['many', '5/1q'].entries()) {
    await press(page, 'Add a window');
    await page.getByLabel(`Window ${i + 2}`, { exact: true }).fill(text);
  }
  await press(page, 'Preview');
  const faultOf = async (row: number) => page.locator('.window-row').nth(row).locator('.fault').allInnerTexts();
  await expect.poll(() => faultOf(1)).toEqual(['a window is max/duration, such as "60/1m", got "many"']);
  expect([await faultOf(0), await faultOf(2)]).toEqual([[], [expect.stringContaining('got "1q"')]]);
  await press(page, 'Remove window 2');
  // The dialog moves the focus, and text goes where the focus is.
  await page.getByLabel('Window 1', { exact: true }).and(page.locator(':focus')).waitFor();
  await page.getByLabel('Window 2', { exact: true }).fill('70/1m');
  await press(page, 'Preview');
  await waitForText(page, 'two windows of one limit need distinct durations');
});

test('a warning needs a tick; any other wish needs another preview', async () => {
  const page = await openDialog({ provider: 'linkedin' }, '20/1m');
  await page.getByLabel('New limit').selectOption({ label: 'No limit' });
  await press(page, 'Preview');
  await waitForText(page, 'would be removed for every account');
  await press(page, 'Apply');
  expect(await page.evaluate(() => document.activeElement?.matches('[type=checkbox]:invalid'))).toBe(true);
  expect((await limitOf({ provider: 'linkedin' })).adjusted).toBeNull();
  await page.getByLabel('New limit').selectOption('recommended');
  await page.waitForSelector('button >> text=Apply', { state: 'detached' });
  await press(page, 'Preview');
  await apply(page);
  await waitForText(page, 'processes obey');
  expect((await limitOf({ provider: 'linkedin' })).adjusted.windows).toEqual(['20/1m', '800/1d']);
});

test('a limit of 0 for one account needs a tick', async () => {
  const target = { account: 'acc_2', route: EMAILS };
  const before = await limitOf(target);
  const page = await openDialog(target, '0/1m');
  await press(page, 'Preview');
  await press(page, 'Apply');
  expect(await page.evaluate(() => document.activeElement?.matches('[type=checkbox]:invalid'))).toBe(true);
  expect((await limitOf(target)).adjusted).toEqual(before.adjusted);
});

test('the preview shows the accounts that the dry run names', async () => {
  await gateway.send('acc_1', 3, CHATS);
  const reply = await gateway.admin('PUT', '/v1/limit?dryRun=true&account=acc_1', { json: { windows: ['2/1m'] } });
  // A gateway of another version may leave them out.
  const { accounts, now = [] } = JSON.parse(reply.text);
  const page = await openDialog({ account: 'acc_1' }, '2/1m');
  await press(page, 'Preview');
  await page.getByRole('button', { name: 'Apply' }).waitFor();
  const text = await page.locator('.preview').innerText();
  expect(
    text.includes(
      '1 account that this gateway has seen lately would get another limit. Of them, 1 would be rejected now.',
    ),
  ).toBe(accounts !== undefined);
  expect(await page.locator('.preview tbody tr').allInnerTexts()).toEqual(
    now.map(() => expect.stringMatching(/^acc_1\t.*chats\t3 of 2\trejected\t[\d.]+\t(never|\d.*)$/)),
  );
  expect(text).toMatch(/acc_1 makes [\d.]+ requests per minute at this gateway\. .* by these alone, the new limit is /);
  // What decides comes before what leads away, and Back from there does not return to the dialog.
  const order = await page
    .locator('.preview')
    .locator('input, button, a')
    .evaluateAll((all) => all.map(({ tagName, textContent }) => textContent || tagName));
  expect(order).toEqual(['INPUT', 'Apply', ...now.map(() => 'acc_1')]);
  await page.locator('.preview a').click();
  await page.waitForSelector('h1 >> text=acc_1');
  await page.goBack();
  await page.waitForSelector('h1 >> text=Limits');
  expect(await page.locator('dialog').count()).toBe(0);
});

test('an end at a time is a time of the operator', async () => {
  const page = await openDialog({ account: 'acc_1', route: CHATS }, '61/1m');
  await page.getByLabel('Ends').selectOption({ label: 'At a time' });
  const end = new Date(Math.floor(Date.now() / 60_000) * 60_000 + 7_200_000);
  const local = new Date(end.getTime() - end.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  await page.getByLabel('Date and time').fill(local);
  await press(page, 'Preview');
  await apply(page);
  await waitForText(page, 'processes obey');
  expect((await limitOf({ account: 'acc_1', route: CHATS })).adjusted.until).toBe(end.toISOString());
});

test('a limit that ends keeps its end when it is changed', async () => {
  const query = new URLSearchParams({ account: 'acc_3', route: CHATS });
  await gateway.admin('PUT', `/v1/limit?${query}`, { json: { windows: ['70/1m'], forMs: 3_600_000 } });
  const { until } = (await limitOf({ account: 'acc_3', route: CHATS })).adjusted;
  const page = await openDialog({ account: 'acc_3', route: CHATS }, '71/1m');
  await press(page, 'Preview');
  await apply(page);
  await waitForText(page, 'processes obey');
  const { adjusted } = await limitOf({ account: 'acc_3', route: CHATS });
  expect([adjusted.windows, Math.abs(Date.parse(adjusted.until) - Date.parse(until)) < 1_000]).toEqual([
    ['71/1m'],
    true,
  ]);
});

test('if another operator was faster, it shows the limit of now, and the operator looks and decides again', async () => {
  const target = { account: 'acc_2', route: CHATS };
  const page = await openDialog(target, '55/1m');
  await press(page, 'Preview');
  await waitForText(page, 'After');
  await put(target, ['44/1m']);
  await apply(page);
  await page.waitForSelector('h3:focus >> text=Another operator has changed this limit. Your change was not made.');
  const conflict = page.locator('dialog section', { hasText: 'Look again' });
  await expect.poll(() => conflict.innerText()).toMatch(/44\/1m by ada, \d\d:\d\d:\d\d: INC-7/);
  await press(page, 'Look again');
  expect(await page.getByLabel('Window 1', { exact: true }).inputValue()).toBe('55/1m');
  await press(page, 'Preview');
  await apply(page);
  await waitForText(page, 'processes obey');
  expect((await limitOf(target)).adjusted).toMatchObject({ windows: ['55/1m'], by: 'olaf' });
});

test('if the answer is lost it says that the change may be stored, and reads the limit again', async () => {
  const page = await openDialog({ account: 'acc_3', route: CHATS }, '66/1m');
  await press(page, 'Preview');
  await waitForText(page, 'After');
  await page.route('**/v1/limit?*', async (route) => {
    if (route.request().method() !== 'PUT') return route.continue();
    // The change is made.
    await route.fetch();
    await route.abort();
  });
  await apply(page);
  await page.waitForSelector('h3:focus >> text=The change may have been stored');
  await waitForText(page, 'The limit has changed since you looked:');
  expect(await dialogText(page)).toContain('66/1m by olaf');
});

test('the address of a limit opens its dialog, also of a name that looks like HTML; closing it takes `edit` away', async () => {
  const page = await gateway.open(addressOf({ account: HTML, route: EMAILS }));
  await page.waitForSelector('dialog form');
  expect(await page.locator('dialog h2').innerText()).toBe(`Limit: account ${HTML}, ${EMAILS}`);
  await page.keyboard.press('Escape');
  await expect.poll(() => page.evaluate(() => location.hash)).not.toContain('edit');
  expect(await page.getByLabel('Name').first().inputValue()).toBe(HTML);
  await page.waitForSelector('text=No limit fits this filter.');
});

test('the list is filtered by layer, name and what is adjusted', async () => {
  await put({ account: 'acc_1' }, ['62/1m']);
  const page = await gateway.open('#/limits');
  const rows = () => page.locator('tbody tr td:first-child').allInnerTexts();
  await expect.poll(async () => new Set(await rows()).size).toBeGreaterThan(2);
  await page.getByLabel('Layer').first().selectOption('provider');
  await expect.poll(async () => [...new Set(await rows())]).toEqual(['provider linkedin']);
  await page.getByLabel('Layer').first().selectOption('account');
  await page.getByLabel('Name').first().fill('acc_1');
  await page.keyboard.press('Enter');
  await expect.poll(async () => [...new Set(await rows())]).toEqual(['account acc_1']);
  await page.getByLabel('Layer').first().selectOption('default');
  await expect.poll(rows).toEqual(['default']);
  await page.getByLabel('Adjusted only').check();
  await waitForText(page, 'No limit fits this filter.');
});

test('the export is copied', async () => {
  const page = await gateway.open('#/limits');
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await pressAt(page, 'Export');
  await pressAt(page, 'Copy');
  await waitForText(page, 'Copied.');
  const { limits } = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
  expect(limits).toEqual(JSON.parse((await gateway.admin('GET', '/v1/limits/export')).text));
});

test('a viewer reads everything, and sees no button that changes anything', async () => {
  await put({ account: 'acc_1' }, ['63/1m']);
  const page = await gateway.open('#/limits', 'viewer');
  await page.waitForSelector('td >> text=account acc_1');
  const buttons = () => page.locator('main').getByRole('button').allInnerTexts();
  expect(await buttons()).toEqual(['Export', 'Show']);
  await page.getByRole('link', { name: 'History' }).click();
  // The list of limits names her too.
  await page.waitForSelector('h1 >> text=History of limits');
  await page.waitForSelector('td >> text=ada');
  expect(await buttons()).toEqual(['Export', 'Newer changes', 'Older changes']);
  await page.goto(`${gateway.url}${addressOf({ account: 'acc_1' })}`);
  await waitForText(page, 'Only operators may change limits.');
  expect(await page.locator('dialog').count()).toBe(0);
});
