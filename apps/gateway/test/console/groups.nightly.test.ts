/** S29, S31: what the console says of groups and of requests in flight. */
import { expect, test } from 'vitest';
import { CHATS, EMAILS, startConsole, VIEWS } from './support/console-gateway.ts';

const gateway = await startConsole({
  accounts: ['acc_1', 'acc_2'].map((id) => ({ id, application: 'app_1', groups: { customer: 'cus_7' } })),
  routes: [
    { route: EMAILS, account: 'query.account_id' },
    { route: CHATS, account: 'query.account_id' },
  ],
  limits: {
    default: { allMethods: { windows: ['100/1m'], inFlight: 10 } },
    groups: { customer: { allMethods: { windows: ['300/1h'], inFlight: 50 }, routes: { [EMAILS]: ['3/1h'] } } },
  },
});

test.each(VIEWS)('a full group is shown on the page of its account (%s, %d px)', async (colorScheme, width) => {
  await gateway.send('acc_2', 3);
  const page = await gateway.open('#/accounts/acc_1', 'operator', { colorScheme, viewport: { width, height: 900 } });
  await page.waitForSelector(
    `text=/${EMAILS}: rejects, room in .* \\(This route of the group customer, 3 per hour\\)/`,
  );
  const card = page.locator(`section:has(> .row h3:text-is("${EMAILS}"))`);
  expect(await card.textContent()).toContain('In flight: 0 of 50');
  const isOnScreen = await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth);
  expect(isOnScreen).toBe(true);
  // Its limit is changed on its own page.
  expect(await page.getByRole('button', { name: `Adjust ${EMAILS}` }).count()).toBe(0);
  await page.getByRole('button', { name: 'Ask' }).click();
  await page.waitForSelector('text=Rejected with 429 by This route of the group customer, 3 per hour, with 0 left');
  await card.getByRole('link', { name: 'group:customer:cus_7' }).click();
  await page.waitForSelector('h1:text-is("group:customer:cus_7")');
});

test.each(VIEWS)('the page Limits lists groups and requests in flight (%s, %d px)', async (colorScheme, width) => {
  const page = await gateway.open('#/limits', 'operator', { colorScheme, viewport: { width, height: 900 } });
  const table = page.getByRole('region', { name: 'Limits of groups' });
  await table.waitFor();
  const rows = await table.locator('tbody tr').allInnerTexts();
  expect(rows.map((row) => row.split('\t'))).toEqual([
    ['customer', 'all methods', '300/1h', 'at most 50'],
    ['customer', EMAILS, '3/1h', ''],
  ]);
  await page.waitForSelector('td:text-is("at most 10")');
  const isOnScreen = await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth);
  expect(isOnScreen).toBe(true);
});
