import { checkPage } from 'headgate-testbed/page-checks';
import { eventually } from 'headgate-testbed/raw-http';
import { startUpstream } from 'headgate-testbed/upstream';
import { expect, test } from 'vitest';
import { startConsole, VIEWS } from './support/console-gateway.ts';
import { chooseIn, pressAt, tabTo, typeInto } from './support/keyboard.ts';

const IMAGE = '<img src=x onerror=alert(1)>';

/** The upstream never answers the next request. */
let holdsNext = false;
const upstream = await startUpstream((_seen, response) => {
  if (!holdsNext) response.end('{"ok":true}');
  holdsNext = false;
});
const gateway = await startConsole({
  upstream: upstream.url,
  idempotency: { secret: 'the-secret-of-fingerprints', waitMs: 0 },
  drainMs: 0,
  routes: [
    { route: 'POST /once', idempotent: { leaseMs: 50, maxRunMs: 20 } },
    { route: 'POST /slow', idempotent: true },
  ],
  // Its routes count per key.
  limits: { default: { allMethods: ['1000/1m'] } },
});

const post = (path: string, key: string) => gateway.ask('POST', path, { 'idempotency-key': key }, { body: 'x' });
const addressOf = (key: string) => `#/claims?${new URLSearchParams({ application: 'app_1', key })}`;
const stateOf = async (key: string) =>
  JSON.parse((await gateway.admin('GET', `/v1/claims?${new URLSearchParams({ application: 'app_1', key })}`)).text)
    .state;

/** A request that is never answered. It ends with the gateway. */
async function hold(path: string, key: string, state: string): Promise<void> {
  holdsNext = true;
  post(path, key).catch(() => {});
  await eventually(async () => !holdsNext && (await stateOf(key)) === state, `the claim that is ${state}`);
}

/** A claim whose owner has given it up. Its retry runs into it. */
async function orphan(key: string): Promise<void> {
  await hold('/once', key, 'orphan');
  expect((await post('/once', key)).status).toBe(409);
}

test.each(VIEWS)(
  'in %s colours, %d pixels wide, it shows orphans, and what became of one',
  async (colorScheme, width) => {
    if (width === VIEWS[0][1]) await orphan(IMAGE);
    const page = await gateway.open('#/claims', 'viewer', { colorScheme, viewport: { width, height: 800 } });
    await page.click(`td a:text-is("${IMAGE}")`);
    await page.waitForSelector('.badge >> text=orphan');
    expect(await page.textContent('section[aria-labelledby=claim]')).toMatch(
      /May have been executed\s*yes.*Lease of its owner\s*none/,
    );
    const buttons = await page.locator('main button').allTextContents();
    expect(buttons).toEqual(['Look up']);
    await checkPage(page, 'en');
  },
);

test('by keyboard: an orphan is completed, and its retry gets the answer; what is not JSON is not sent', async () => {
  await orphan('order-1');
  const page = await gateway.open('#/claims');
  await typeInto(page, 'Application', 'app_1');
  await typeInto(page, 'Idempotency key', 'order-1');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.badge >> text=orphan');
  await pressAt(page, 'Complete…');
  await typeInto(page, 'Status', '201');
  await typeInto(page, 'Headers', '{"content-type": json}');
  await typeInto(page, 'Body', '{"id":"mail-1"');
  await typeInto(page, 'Reason', 'found at the provider');
  await pressAt(page, 'Complete');
  await page.waitForSelector('.fault >> text=Not valid JSON');
  await typeInto(page, 'Headers', '{"x-id": 1}');
  await pressAt(page, 'Complete');
  await page.waitForSelector('.fault >> text=Must be an object of texts');
  await typeInto(page, 'Headers', '{"Content-Type": "application/json"}');
  await pressAt(page, 'Complete');
  await page.waitForSelector('.fault >> text=Not valid JSON, although content-type says so');
  expect(await stateOf('order-1')).toBe('orphan');
  await checkPage(page, 'en');
  await typeInto(page, 'Body', '{"id":"mail-1"}');
  await tabTo(page, 'Reason');
  await page.keyboard.press('Enter');
  await page.waitForSelector('text=completed: every retry gets status 201 from now on.');
  await page.waitForSelector('.badge >> text=completed');
  expect(await page.locator('section[aria-labelledby=claim] button').count()).toBe(0);
  expect(await post('/once', 'order-1')).toMatchObject({ status: 201, text: '{"id":"mail-1"}' });
  await expect
    .poll(() => gateway.lines().find(({ msg }) => msg === 'claim completed'))
    .toMatchObject({ by: 'olaf', reason: 'found at the provider' });
});

test('by keyboard: an orphan is released, and its retry is executed', async () => {
  await orphan('order-2');
  const before = upstream.seen.length;
  const page = await gateway.open(addressOf('order-2'));
  await page.waitForSelector('.badge >> text=orphan');
  await pressAt(page, 'Release…');
  await page.waitForSelector('dialog >> text=executed a second time');
  await pressAt(page, 'Cancel');
  await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe('Release…');
  await page.keyboard.press('Enter');
  await typeInto(page, 'Reason', ' ');
  await pressAt(page, 'Release');
  await page.waitForSelector('.fault >> text=Type a reason');
  expect(await page.evaluate(() => document.activeElement?.getAttribute('aria-invalid'))).toBe('true');
  expect(await stateOf('order-2')).toBe('orphan');
  await page.keyboard.type('not at the provider ');
  await page.keyboard.press('Enter');
  await page.waitForSelector('text=released: the next retry is executed.');
  await page.waitForSelector('.badge >> text=free');
  expect((await post('/once', 'order-2')).status).toBe(200);
  expect(upstream.seen).toHaveLength(before + 1);
});

test('a claim whose owner lives: completing it is refused in words, and its release asks for the key', async () => {
  await hold('/slow', 'order-3', 'in_progress');
  const [colorScheme, width] = VIEWS[1];
  const page = await gateway.open(addressOf('order-3'), 'operator', { colorScheme, viewport: { width, height: 800 } });
  await page.waitForSelector('.badge >> text=in progress');
  await pressAt(page, 'Complete…');
  await typeInto(page, 'Headers', ' ');
  await typeInto(page, 'Reason', 'INC-12');
  await pressAt(page, 'Complete');
  await page.waitForSelector(
    'dialog [role=alert] >> text=in_progress: its owner still has the lease; wait for leaseMs.',
  );
  await page.keyboard.press('Escape');
  await pressAt(page, 'Release…');
  const release = page.locator('dialog button[type=submit]');
  await typeInto(page, 'Type the key to release it by force', 'order');
  expect(await release.isDisabled()).toBe(true);
  await checkPage(page, 'en');
  await page.keyboard.press('Enter');
  expect(await stateOf('order-3')).toBe('in_progress');
  await page.keyboard.type('-3');
  await expect.poll(() => release.isDisabled()).toBe(false);
  await typeInto(page, 'Reason', 'its owner hangs');
  await page.keyboard.press('Enter');
  await page.waitForSelector('text=released: the next retry is executed.');
  await page.waitForSelector('.badge >> text=free');
});

test('by keyboard: a scan goes on page by page, and finds an orphan that no retry has met', async () => {
  await hold('/once', 'order-4', 'orphan');
  const page = await gateway.open('#/claims');
  await page.waitForSelector('text=Scan the store');
  expect(await page.locator('td >> text=order-4').count()).toBe(0);
  await Promise.all(Array.from({ length: 101 }, (_, i) => post('/once', `done-${i}`)));
  await chooseIn(page, 'State', 'comp');
  await pressAt(page, 'Scan');
  await page.waitForSelector('text=/claims found, \\d+ claims looked at\\.$/');
  while ((await page.locator('text=The scan is at its end.').count()) === 0) {
    const before = await page.locator('[role=status]').textContent();
    await pressAt(page, 'Go on');
    await expect.poll(() => page.locator('[role=status]').textContent()).not.toBe(before);
  }
  const keys = await page.locator('section[aria-labelledby=scan] td a').allTextContents();
  expect(keys.filter((key) => key.startsWith('done-'))).toHaveLength(101);
  await chooseIn(page, 'State', 'orph');
  await tabTo(page, 'Scan');
  await page.keyboard.press('Enter');
  await page.waitForSelector('section[aria-labelledby=scan] td >> text=order-4');
  await tabTo(page, 'order-4');
  await page.keyboard.press('Enter');
  await page.waitForSelector('h2 >> text=order-4');
});

test('a claim that there is not is said in words, and no button is there', async () => {
  const page = await gateway.open(addressOf('nothing'));
  await page.waitForSelector('text=absent: there is no claim of this key, or it is free.');
  expect(await page.locator('section[aria-labelledby=claim] button').count()).toBe(0);
});
