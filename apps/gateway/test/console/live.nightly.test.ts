import { checkPage } from 'headgate-testbed/page-checks';
import { openRaw, type RawConnection } from 'headgate-testbed/raw-http';
import { expect, test } from 'vitest';
import { TOKENS } from '../support/admin.ts';
import { CHATS, EMAILS, startConsole, VIEWS } from './support/console-gateway.ts';
import { tabTo } from './support/keyboard.ts';

const IMAGE = '<img src=x onerror=alert(1)>';
const gateway = await startConsole();

test.each(VIEWS)(
  'in %s colours, %d pixels wide, it shows what happens, and a whole decision',
  async (colorScheme, width) => {
    await gateway.send(IMAGE, 1);
    const page = await gateway.open('#/live', 'viewer', { colorScheme, viewport: { width, height: 800 } });
    await page.waitForSelector('text=Connected.');
    await gateway.send('acc_1', 1, CHATS);
    await gateway.ask('POST', '/once', { 'idempotency-key': `key-${width}` }, { body: 'x' });
    await gateway.admin('POST', '/v1/windows/reset', { json: { account: 'acc_2' } });
    const events = page.locator('.events');
    await page.waitForSelector('.events >> text=reset counters');
    await expect.poll(() => events.textContent()).toContain(`completed, key key-${width} of app_1`);
    expect(await events.textContent()).toContain(`acc_1 ${CHATS}`);
    // What was before the page was opened.
    expect(await events.textContent()).toContain(`${IMAGE} ${EMAILS}`);
    await checkPage(page, 'en');
    await page.locator('.events button').first().click();
    await page.waitForSelector('dialog [role=meter]');
    expect(await page.locator('dialog [role=meter]').count()).toBe(2);
    await checkPage(page, 'en');
    await page.keyboard.press('Escape');
    await expect.poll(() => page.locator('dialog').count()).toBe(0);
    for (const refused of ['Reset', 'Change'])
      expect(await page.locator('main button', { hasText: refused }).count()).toBe(0);
  },
);

test('by keyboard: filters, a pause, and one request by its req_id', async () => {
  const page = await gateway.open('#/live', 'viewer');
  await page.waitForSelector('text=Connected.');
  await gateway.send('acc_2', 1, CHATS);
  const events = page.locator('.events');
  await expect.poll(() => events.textContent()).toContain('acc_2');
  await tabTo(page, 'Account');
  await page.keyboard.type('acc_3');
  await tabTo(page, 'Outcome');
  await page.keyboard.type('rej');
  await page.keyboard.press('Enter');
  await tabTo(page, 'Show');
  await page.keyboard.press('Enter');
  await page.waitForSelector('text=Nothing that fits has happened.');
  expect(await page.evaluate(() => location.hash)).toBe('#/live?account=acc_3&outcome=rejected');
  await gateway.send('acc_3', 7);
  await expect.poll(() => events.locator('.badge').allTextContents()).toEqual(['rejected', 'rejected']);
  // The list stands still while the focus or the pointer is in it.
  const rows = events.locator('li');
  for (const [aim, leave] of [
    [() => events.getByRole('button').first().focus(), () => page.focus('h1')],
    [() => events.hover(), () => page.mouse.move(0, 0)],
  ] as const) {
    const before = await rows.count();
    await aim();
    await gateway.send('acc_3', 1);
    await page.waitForSelector('text=The list stands still while you are in it: 1 new.');
    expect(await rows.count()).toBe(before);
    await leave();
    await expect.poll(() => rows.count()).toBe(before + 1);
  }
  await tabTo(page, 'Pause');
  await page.keyboard.press('Enter');
  await gateway.send('acc_2', 6);
  await gateway.send('acc_3', 1);
  await page.waitForSelector('text=Paused. 1 event came since.');
  expect(await rows.count()).toBe(4);
  await page.keyboard.press('Enter');
  await expect.poll(() => rows.count()).toBe(5);
  const { headers } = await gateway.ask('GET', '/api/v1/chats?account_id=acc_1');
  await tabTo(page, 'req_id');
  await page.keyboard.type(String(headers['x-request-id']));
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog >> text=/All methods, 800 per day/');
  expect(await page.locator('dialog').textContent()).toContain(String(headers['x-request-id']));
  await page.keyboard.press('Escape');
  await page.keyboard.type('x');
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog >> text=None of the last 1,000 decisions has this req_id.');
});

test('changes of limits are readable, unknown events are text, dropped ones are counted; it connects again by itself', async () => {
  const at = '2026-11-23T04:44:57.123Z';
  const changes = [{ target: { provider: 'linkedin', route: EMAILS }, old: null, new: ['4/1m'] }];
  const body = [
    ['limits', { at, version: 17, by: 'olaf', reason: 'INC-12', source: 'change', changes }],
    ['something', { at, what: IMAGE }],
    ['dropped', { count: 3 }],
  ].map(([type, data]) => `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`);
  const page = await gateway.open('#/', 'viewer');
  await page.route(
    '**/v1/events?*',
    (request) => request.fulfill({ contentType: 'text/event-stream', body: body.join('') }),
    { times: 1 },
  );
  await page.evaluate(() => {
    location.hash = '#/live?sample=0.1';
  });
  await page.waitForSelector('text=olaf changed limits (change 17): INC-12');
  const text = await page.locator('.events').textContent();
  expect(text).toContain(`provider linkedin, ${EMAILS}: as in the config → 4/1m`);
  expect(text).toContain(`something {"at":"${at}","what":"${IMAGE}"}`);
  await page.waitForSelector('text=3 events were dropped');
  await page.waitForSelector('text=Connected.');
  expect(await page.locator('.events').textContent()).toContain('olaf changed limits');
});

test('if too many listen, it says what to do, and connects when there is room', async () => {
  const others: RawConnection[] = [];
  const head = `GET /v1/events?types=state HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${TOKENS.viewer}\r\n\r\n`;
  for (let answer = ''; !answer.includes(' 503 '); ) {
    const client = await openRaw(gateway.adminPort);
    others.push(client);
    client.write(head);
    answer = await new Promise((resolve) => client.socket.once('data', (chunk: Buffer) => resolve(chunk.toString())));
  }
  const page = await gateway.open('#/live', 'viewer');
  await page.waitForSelector('text=/Close a page that shows events.*The console connects again in 1 s/');
  for (const client of others) client.destroy();
  await page.waitForSelector('text=Connected.');
});

test('a hidden tab does not listen; when it is seen again, nothing is missing and nothing is shown twice', async () => {
  const page = await gateway.open('#/live?account=acc_1&outcome=accepted', 'viewer');
  await page.waitForSelector('text=Connected.');
  const rows = page.locator('.events li');
  await gateway.admin('POST', '/v1/windows/reset', { json: { account: 'acc_1' } });
  await gateway.send('acc_1', 1);
  await page.waitForSelector('.events >> text=4 left');
  const before = await rows.count();
  const see = (state: 'hidden' | 'visible') =>
    page.evaluate((value) => {
      Object.defineProperty(document, 'visibilityState', { value, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }, state);
  const ended = page.waitForEvent('requestfailed', (request) => request.url().includes('v1/events'));
  await see('hidden');
  await ended;
  await gateway.send('acc_1', 2);
  expect(await rows.count()).toBe(before);
  await see('visible');
  await expect.poll(() => rows.count()).toBe(before + 2);
  await gateway.send('acc_1', 1);
  await expect.poll(() => rows.count()).toBe(before + 3);
});
