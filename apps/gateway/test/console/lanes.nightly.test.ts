/** S28, S30: what the console says of lanes and pauses. */
import { expect, test } from 'vitest';
import { CHATS, EMAILS, LIMITS, startConsole } from './support/console-gateway.ts';

const BULK = 'POST /bulk';
const gateway = await startConsole({
  routes: [
    { route: EMAILS, account: 'query.account_id' },
    { route: CHATS, account: 'query.account_id' },
    { route: BULK, account: 'query.account_id', lane: 'bulk' },
  ],
  limits: { ...LIMITS, lanes: { bulk: 0.5 } },
});

test('a full lane is shown, and Adjust raises the limit of which the lane has a share', async () => {
  expect(await gateway.send('acc_1', 11, BULK)).toEqual([...Array(10).fill(200), 429]);
  const page = await gateway.open('#/accounts/acc_1');
  await page.waitForSelector('text=POST /bulk: rejects, room in');
  const card = page.locator(`section:has(> .row h3:text-is("${BULK}"))`);
  expect(await card.textContent()).toContain('Lane bulk: its share of each limit');
  const meters = await card
    .locator('[role=meter]')
    .evaluateAll((all) => all.map((each) => each.getAttribute('aria-valuetext')));
  expect(meters).toEqual(['10 of 10 used', '10 of 400 used']);
  await page.getByRole('button', { name: 'Adjust' }).click();
  await page.getByRole('button', { name: 'Double: 40/1m, 800/1d' }).waitFor();
});

test('a pause is not called a block', async () => {
  const json = { forMs: 60_000, reason: 'provider' };
  expect((await gateway.admin('PUT', '/v1/block?account=acc_2', { json })).status).toBe(200);
  expect(await gateway.send('acc_2', 1)).toEqual([429]);
  const page = await gateway.open('#/live');
  await page.waitForSelector('.events >> text=/acc_2 .* paused by its provider, for/');
});
