import { checkPage } from 'headgate-testbed/page-checks';
import { redisForFile } from 'headgate-testbed/redis-for-file';
import { expect, test } from 'vitest';
import { CHATS, startConsole, VIEWS } from './support/console-gateway.ts';
import { pressAt, tabTo, typeInto } from './support/keyboard.ts';

const IMAGE = '<img src=x onerror=alert(1)>';
const redis = await redisForFile();
const gateway = await startConsole({ store: `redis://127.0.0.1:${redis.port}` });
const addressOf = (account: string) => `#/accounts/${encodeURIComponent(account)}`;

test.each(VIEWS)(
  'in %s colours, %d pixels wide, by keyboard: an operator blocks an account, and lifts the block',
  async (colorScheme, width) => {
    const account = width > 1_000 ? 'acc_1' : IMAGE;
    const page = await gateway.open(addressOf(account), 'operator', { colorScheme, viewport: { width, height: 800 } });
    await pressAt(page, 'Block account…');
    await page.waitForSelector(`dialog h2 >> text=Block ${account}?`);
    await checkPage(page, 'en');
    await tabTo(page, 'Ends');
    await page.keyboard.type('In 1 day');
    await tabTo(page, 'Reason');
    await page.keyboard.press('Enter');
    await page.waitForSelector('text=Type a reason');
    await page.keyboard.type('Unpaid.');
    await page.keyboard.press('Enter');
    await page.waitForSelector(`text=${account} is blocked.`);
    await page.waitForSelector('text=2 routes of 2 reject requests now');
    expect(await page.locator('h3 + .badge').allTextContents()).toEqual(
      Array(2).fill(expect.stringMatching(/^blocked, room in /)),
    );
    const notice = page.locator('.notice.bad', { hasText: 'The account is blocked' });
    expect(await notice.innerText()).toMatch(
      /^The account is blocked for (1 d|23 h 59 min), until \d+ \w+ \d{4}, [\d:]+: Unpaid\./,
    );
    expect(await gateway.send(account, 1)).toEqual([429]);
    // The decision says why.
    await page.waitForSelector('.events >> text=/rejected .* by a block, for (1 d|23 h 59 min): Unpaid\\./');
    await page.locator('.events button').first().press('Enter');
    await page.waitForSelector('dialog >> text=/A block rejected it, .* left: Unpaid\\.$/');
    await page.keyboard.press('Escape');
    await pressAt(page, 'Ask');
    await page.waitForSelector('text=/Rejected with 429 by a block \\(Unpaid\\.\\)\\. It passes in/');
    await checkPage(page, 'en');
    await pressAt(page, `Unblock ${account}…`);
    await typeInto(page, 'Reason', 'paid');
    await page.keyboard.press('Enter');
    await page.waitForSelector(`text=${account} is not blocked any more.`);
    await page.waitForSelector('text=The account is blocked', { state: 'detached' });
    await expect
      .poll(() => gateway.lines().filter(({ msg }) => msg === 'account blocked' || msg === 'account unblocked'))
      .toMatchObject([...Array(width > 1_000 ? 0 : 2).fill({}), { reason: 'Unpaid.' }, { by: 'olaf', reason: 'paid' }]);
    expect(await gateway.send(account, 1)).toEqual([200]);
  },
);

test('by keyboard: an operator blocks one route until a time, and a viewer only sees it', async () => {
  const page = await gateway.open(addressOf('acc_3'));
  const card = page.locator(`section:has(> .row h3:text-is("${CHATS}"))`);
  await pressAt(page, `Block route ${CHATS}…`);
  await tabTo(page, 'Ends');
  await page.keyboard.type('At a time');
  await page.locator('input[type=datetime-local]').fill('2020-01-01T00:00');
  await typeInto(page, 'Reason', 'x'.repeat(201));
  expect(await page.locator('dialog input').last().inputValue()).toHaveLength(200);
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog >> text=until: must be in the future, and at most a year from now');
  const later = new Date(Date.now() + 7_200_000);
  const local = new Date(later.getTime() - later.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  await page.locator('input[type=datetime-local]').fill(local);
  await page.locator('dialog input').last().fill('Too many bounces.');
  await page.keyboard.press('Enter');
  await page.waitForSelector(`text=acc_3 on ${CHATS} is blocked.`);
  await expect.poll(() => card.innerText()).toMatch(/This route is blocked for .*: Too many bounces\./);
  await page.waitForSelector('text=1 route of 2 rejects requests now');
  expect([await gateway.send('acc_3', 1), await gateway.send('acc_3', 1, CHATS)]).toEqual([[200], [429]]);

  const viewer = await gateway.open(addressOf('acc_3'), 'viewer');
  await viewer.waitForSelector('text=This route is blocked');
  expect(await viewer.getByRole('button', { name: /block/i }).count()).toBe(0);
  const live = await gateway.open('#/live', 'viewer');
  await live.waitForSelector(`text=olaf blocked acc_3 on ${CHATS}`);

  await pressAt(page, `Unblock ${CHATS}…`);
  await typeInto(page, 'Reason', 'mended');
  await page.keyboard.press('Enter');
  await page.waitForSelector(`text=acc_3 on ${CHATS} is not blocked any more.`);
  await viewer.waitForSelector('text=This route is blocked', { state: 'detached' });
  expect(await gateway.send('acc_3', 1, CHATS)).toEqual([200]);
});
