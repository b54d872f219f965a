import { checkPage } from 'headgate-testbed/page-checks';
import { expect, test } from 'vitest';
import { CHATS, EMAILS, startConsole, VIEWS } from './support/console-gateway.ts';
import { pressAt, tabTo, typeInto } from './support/keyboard.ts';

const IMAGE = '<img src=x onerror=alert(1)>';
const gateway = await startConsole();
const addressOf = (account: string) => `#/accounts/${encodeURIComponent(account)}`;

test.each(VIEWS)(
  'in %s colours, %d pixels wide, it finds accounts by the beginning of their ids',
  async (colorScheme, width) => {
    const page = await gateway.open('#/accounts', 'viewer', { colorScheme, viewport: { width, height: 800 } });
    await page.waitForSelector('td >> text=acc_3');
    expect(await page.locator('tbody tr').count()).toBe(4);
    await checkPage(page, 'en');
    await page.keyboard.press('/');
    await page.keyboard.type('<img');
    await expect.poll(() => page.locator('tbody a').allTextContents()).toEqual([IMAGE]);
    await page.keyboard.type('?');
    await page.waitForSelector('text=No account of the config begins with <img?');
    await page.keyboard.press('Backspace');
    await expect.poll(() => page.locator('tbody a').count()).toBe(1);
    await page.keyboard.press('Enter');
    await page.waitForSelector(`h1 >> text=${IMAGE}`);
  },
);

test.each([
  [...VIEWS[0], 'acc_1'],
  [...VIEWS[1], IMAGE],
] as const)(
  'in %s colours, %d pixels wide, the account %s shows which window rejects, and when there is room',
  async (colorScheme, width, account) => {
    const page = await gateway.open(addressOf(account), 'viewer', { colorScheme, viewport: { width, height: 800 } });
    await page.waitForSelector('text=Nothing is rejected now');
    expect(await gateway.send(account, 7)).toContain(429);
    await page.waitForSelector('text=1 route of 2 rejects requests now');
    const summary = page.locator('.notice.bad li');
    expect(await summary.textContent()).toMatch(
      /^POST \/api\/v1\/emails: rejects, room in .* \(This route, 5 per minute\)$/,
    );
    const card = page.locator(`section:has(> .row h3:text-is("${EMAILS}"))`);
    const meters = await card
      .locator('[role=meter]')
      .evaluateAll((all) => all.map((each) => each.getAttribute('aria-valuetext')));
    expect(meters).toEqual(['5 of 5 used', '5 of 20 used', '5 of 800 used']);
    expect(await card.textContent()).toContain('This route: from the provider linkedin, as in the config');
    const other = page.locator(`section:has(> .row h3:text-is("${CHATS}"))`);
    expect(await other.locator('.badge').textContent()).toBe('has room');
    // Decisions of this account only, the newest first.
    await gateway.send('acc_3', 1);
    await gateway.send(account, 1);
    await expect
      .poll(() => page.locator('.events .badge').allTextContents())
      .toEqual([...Array(3).fill('rejected'), ...Array(5).fill('accepted')]);
    expect(await page.locator('.events').textContent()).not.toContain('acc_3');
    for (const refused of ['Reset', 'Change this limit'])
      expect(await page.locator('main').textContent()).not.toContain(refused);
    await checkPage(page, 'en');
  },
);

test('by keyboard: it explains what a request would be told', async () => {
  const page = await gateway.open(addressOf('acc_2'), 'viewer');
  await page.waitForSelector('text=What would a request be told now?');
  await tabTo(page, 'Cost');
  await page.keyboard.press('Enter');
  await page.waitForSelector('text=Accepted: every limit has room for it.');
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type('6');
  await page.keyboard.press('Enter');
  await page.waitForSelector('text=/Rejected with 422 by This route, 5 per minute, with 5 left. It never passes/');
  await gateway.send('acc_2', 5);
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type('1');
  await page.keyboard.press('Enter');
  await page.waitForSelector('text=/with 0 left. It passes in .* if nothing else comes/');
});

test('by keyboard: an operator resets the counters of a route', async () => {
  await gateway.send('acc_3', 5);
  const page = await gateway.open(addressOf('acc_3'));
  await page.waitForSelector('text=1 route of 2 rejects requests now');
  expect(
    await page
      .getByRole('button', { name: 'Change this limit' })
      .evaluateAll((all) => all.map((each) => each.ariaLabel)),
  ).toEqual(
    [
      ['This route', EMAILS],
      ['All methods', EMAILS],
      ['All methods', CHATS],
    ].map((of) => `Change this limit: ${of.join(', ')}`),
  );
  await tabTo(page, `Reset counters of ${EMAILS}…`);
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog >> text=This empties 3 windows on 1 route, 1 of them full.');
  await checkPage(page, 'en');
  await tabTo(page, 'Reason');
  await page.keyboard.type('INC-12');
  await page.keyboard.press('Enter');
  await page.waitForSelector(`text=The counters of acc_3 on ${EMAILS} are reset.`);
  await page.waitForSelector('text=Nothing is rejected now');
  expect(await page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toBe(
    `Reset counters of ${EMAILS}…`,
  );
  await expect
    .poll(() => gateway.lines().find(({ msg }) => msg === 'windows reset'))
    .toMatchObject({ by: 'olaf', route: EMAILS, reason: 'INC-12' });
  expect(await gateway.send('acc_3', 1)).toEqual([200]);
});

test('by keyboard: from the overview to more for a rejected account, which shows who gave it, why and until when', async () => {
  expect(await gateway.send('acc_1', 6)).toContain(429);
  const page = await gateway.open('#/');
  await pressAt(page, `Adjust acc_1: This route, ${EMAILS}`);
  await page.waitForSelector('dialog legend >> text=Give more, for 1 hour');
  await pressAt(page, 'Double: 10/1m');
  await page.waitForSelector('h3:focus >> text=Preview');
  await tabTo(page, 'Reason');
  await page.keyboard.type('INC-12');
  await page.keyboard.press('Enter');
  await page.waitForSelector('text=1 of 1 processes obey.');
  expect(await gateway.send('acc_1', 1)).toEqual([200]);
  await pressAt(page, 'Done');
  await page.waitForSelector('dialog', { state: 'detached' });
  expect(await page.evaluate(() => [location.hash, document.activeElement?.tagName])).toEqual([
    '#/accounts/acc_1',
    'H1',
  ]);
  const adjusted = page.locator('section:has(> h2:text-is("Adjusted by operators"))');
  expect(await adjusted.innerText()).toMatch(
    /POST \/api\/v1\/emails: 10\/1m by olaf, [\d:]+: INC-12 \(until [\w :,]*[\d:]+\)/,
  );
  await checkPage(page, 'en');
  await pressAt(page, `Put it back: ${EMAILS}`);
  await pressAt(page, 'Preview');
  await page.waitForSelector('h3:focus >> text=Preview');
  await typeInto(page, 'Reason', 'mended');
  await page.keyboard.press('Enter');
  await page.waitForSelector('text=1 of 1 processes obey.');
  await page.goBack();
  await page.waitForSelector('dialog', { state: 'detached' });
  await adjusted.waitFor({ state: 'detached' });
  await page.goBack();
  await page.waitForSelector('h1 >> text=Overview');
});

test('it says whose limit applies, whether an operator has set it, and that a limit of 0 has never room', async () => {
  for (const [target, window] of [
    ['account=acc_3', '50/1m'],
    [`account=acc_3&route=${encodeURIComponent(CHATS)}`, '0/1h'],
  ])
    await gateway.admin('PUT', `/v1/limit?${target}`, { json: { windows: [window], confirm: true } });
  const page = await gateway.open(addressOf('acc_3'), 'viewer');
  const card = page.locator(`section:has(> .row h3:text-is("${CHATS}"))`);
  await expect.poll(() => card.locator('.badge').textContent()).toBe('rejects, never room');
  const text = await card.textContent();
  expect(text).toContain('This route: from the account, adjusted by an operator');
  expect(text).toContain('All methods: from the account, adjusted by an operator');
  expect(text).toContain('This route, 0 per hour0 of 0never room');
});

test('the key / searches for an account, from any page', async () => {
  const page = await gateway.open('#/accounts/acc_1', 'viewer');
  await page.waitForSelector('h1 >> text=acc_1');
  await page.keyboard.press('/');
  await page.waitForSelector('input[type=search]:focus');
  await page.keyboard.type('acc_2');
  await expect.poll(() => page.locator('tbody a').allTextContents()).toEqual(['acc_2']);
  await page.keyboard.press('Enter');
  await page.waitForSelector('h1 >> text=acc_2');
});

test('the code of a page that cannot be loaded is an error in words', async () => {
  const page = await gateway.open('#/', 'viewer');
  await page.route('**/assets/accounts-*.js', (request) => request.abort());
  await page.click('nav a:text-is("Accounts")');
  await page.waitForSelector('text=This page could not be loaded.');
  await page.unroute('**/assets/accounts-*.js');
  await page.click('text=Load the console again');
  await page.waitForSelector('td >> text=acc_1');
});

test('an account that the config does not have is an error in words', async () => {
  const page = await gateway.open('#/accounts/nobody', 'viewer');
  await page.waitForSelector('text=The config has no such account.');
});
