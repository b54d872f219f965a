import { NIGHTLY } from 'headgate-testbed/nightly';
import { checkPage } from 'headgate-testbed/page-checks';
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { linkAccount } from '../support/accounts.ts';
import { startBrowser } from '../support/browser-pages.ts';
import { clientOf } from '../support/client.ts';
import { peopleOf } from '../support/dashboard.ts';
import { unknownEmail } from '../support/emails.ts';
import { secret } from '../support/secret.ts';
import { startService } from '../support/service.ts';
import { startReceiver } from '../support/webhook-receiver.ts';

const service = await startService({ TRUSTED_PROXIES: 'loopback' });
const { url, application, rooms } = service;
const { newMember } = peopleOf(service);
const newPage = await startBrowser();
const password = secret();
const TO = [{ identifier: 'ann@example.com' }];

const submit = (page: Page, label: string) => page.click(`button[type=submit]:visible >> text="${label}"`);

async function signIn(page: Page, email: string): Promise<void> {
  await page.goto(`${url}/dashboard`);
  await page.fill('[name=email]', email);
  await page.fill('[name=password]', password);
  await submit(page, 'Sign in');
  await page.waitForSelector('h1 >> text=Applications');
}

test('the first owner sets up a login, makes an application and a key, and invites a person; without script', async () => {
  const page = await newPage({ javaScriptEnabled: false });
  await page.goto(`${url}/dashboard/join/${await rooms.people.invitations.createSetUpLink()}`);
  await page.fill('[name=name]', 'Ann');
  await page.fill('[name=email]', 'ann@example.com');
  await page.fill('[name=password]', password);
  await submit(page, 'Create the login');
  await page.fill('[name=name]', 'Shop');
  await page.selectOption('[name=environment]', 'production');
  await submit(page, 'Create the application');
  await page.click('summary >> text=Create a service key');
  await page.fill('#field-service-name', 'Backend');
  await submit(page, 'Create the key');
  const token = (await page.textContent('.secret')) ?? '';
  expect((await clientOf(url, token)('GET', '/v2/scopes')).status).toBe(200);
  await page.click('text=I have copied it');
  await page.click('summary >> text=Revoke Backend');
  await submit(page, 'Revoke Backend');
  await page.waitForSelector('.done >> text=The key is revoked.');
  expect((await clientOf(url, token)('GET', '/v2/scopes')).status).toBe(401);
  await page.click('nav >> text=Members');
  await page.click('summary >> text=Invite a person');
  await page.fill('[name=label]', 'Bob');
  await page.selectOption('[name=role] >> visible=true', 'member');
  await submit(page, 'Make a link');
  const link = (await page.textContent('.secret')) ?? '';
  await submit(page, 'Sign out');
  await page.goto(link);
  await page.fill('[name=name]', 'Bob');
  await page.fill('[name=email]', 'bob@example.com');
  await page.fill('[name=password]', password);
  await submit(page, 'Create the login');
  await page.waitForSelector('.person >> text=Bob Member');
  expect(await page.locator('nav >> text=Members').count()).toBe(0);
});

/** Each page once in each kind of colours, and in a wide and a narrow window. */
const VIEWS = [
  ['light', 1280],
  ['dark', 320],
] as const;

/** A browser that looks at pages in one of the views. */
async function viewed(colorScheme: 'light' | 'dark', width: number) {
  const page = await newPage({
    bypassCSP: true,
    colorScheme,
    viewport: { width, height: 700 },
    reducedMotion: 'reduce',
  });
  const seen: string[] = [];
  const check = async (): Promise<void> => void seen.push(await checkPage(page, 'en'));
  const { email } = await newMember('owner', password);
  return { page, seen, check, email };
}

test.runIf(NIGHTLY).each(VIEWS)(
  'in %s colours, %i pixels wide, axe finds nothing on any page, and none scrolls sideways',
  async (colorScheme, width) => {
    const { page, seen, check, email } = await viewed(colorScheme, width);
    const { id, key, token } = await application('development');
    await key('account');
    const scope = (await clientOf(url, token)('POST', '/v2/scopes', { name: 'Customer 7' })).body.id;
    await key('scoped', scope);

    await page.goto(`${url}/dashboard/sign-in`);
    await check();
    await page.fill('[name=email]', email);
    await page.fill('[name=password]', 'wrong');
    await submit(page, 'Sign in');
    await page.waitForSelector('.summary');
    await check();
    await page.goto(`${url}/dashboard/join/${await rooms.people.invitations.createOwnerLink()}`);
    await check();
    await submit(page, 'Create the login');
    await page.waitForSelector('.summary:focus');
    await check();
    await page.goto(`${url}/dashboard/join/nothing`);
    await check();
    await signIn(page, email);
    await check();
    await submit(page, 'Create the application');
    await page.waitForSelector('.summary');
    await check();
    await page.goto(`${url}/dashboard/applications/${id}`);
    await check();
    for (const summary of await page.locator('summary').all()) await summary.click();
    await check();
    await page.fill('#field-account-expires_on', '2020-01-01');
    await page.click('section[aria-labelledby=account-keys] button >> text=Create the key');
    await page.waitForSelector('.summary');
    await check();
    await page.goto(`${url}/dashboard/applications/${id}`);
    await page.click('summary >> text=Create an account key');
    await page.fill('#field-account-name', 'Mailer');
    await page.click('section[aria-labelledby=account-keys] button >> text=Create the key');
    await page.waitForSelector('.secret');
    await check();
    await page.goto(`${url}/dashboard/members`);
    await check();
    for (const summary of await page.locator('summary').all()) await summary.click();
    await check();
    await page.fill('[name=label]', 'Eve');
    await submit(page, 'Make a link');
    await page.waitForSelector('.secret');
    await check();
    await page.goto(`${url}/dashboard/members`);
    await check();
    await page.goto(`${url}/dashboard/audit`);
    await check();
    await page.goto(`${url}/dashboard/login`);
    await check();
    await page.goto(`${url}/dashboard/nothing`);
    await check();
    expect(new Set(seen).size).toBeGreaterThanOrEqual(11);
  },
);

/** An application with an account, whose pages an Owner looks at. */
async function viewedTabs(colorScheme: 'light' | 'dark', width: number) {
  const view = await viewed(colorScheme, width);
  const { id, token } = await application('development');
  const account = await linkAccount(rooms, id, { name: `${width}-${colorScheme}@mock.test` });
  const call = clientOf(url, token);
  for (const subject of ['1', '2', '3'])
    await call('POST', '/api/v1/emails', { account_id: account.id, to: TO, subject, body: subject });
  await signIn(view.page, view.email);
  return { ...view, id, account, tabs: `${url}/dashboard/applications/${id}` };
}

describe.each(VIEWS)('in %s colours, %i pixels wide, axe finds nothing on the pages of', (colorScheme, width) => {
  test.runIf(NIGHTLY)('accounts', async () => {
    const { page, check, account, tabs } = await viewedTabs(colorScheme, width);
    await page.goto(`${tabs}/accounts?status=disconnected&search=nobody`);
    await page.waitForSelector('.empty');
    await check();
    await page.goto(`${tabs}/accounts`);
    await check();
    await page.click(`text=${account.name}`);
    await page.waitForSelector('.bars');
    await check();
    for (const summary of await page.locator('summary').all()) await summary.click();
    await check();
    await submit(page, 'Make the link');
    await page.waitForSelector('.summary');
    await check();
    await page.fill('[name=redirect_uri]', 'https://app.example/linked');
    await submit(page, 'Make the link');
    await page.waitForSelector('.secret');
    await check();
  });

  test.runIf(NIGHTLY)('emails', async () => {
    const { page, check, id, account, tabs } = await viewedTabs(colorScheme, width);
    const unknown = await unknownEmail(service, id, account.id);
    await page.goto(`${tabs}/emails`);
    await check();
    await page.click(`text=${unknown}`);
    await page.click('button >> text=Resolve the email');
    await page.waitForSelector('.summary');
    await check();
    await page.click('text=It was not sent.');
    await submit(page, 'Resolve the email');
    await page.waitForSelector('.done');
    await check();
  });

  test('limits', async () => {
    const { page, check, account, tabs } = await viewedTabs(colorScheme, width);
    await page.goto(`${tabs}/accounts/${account.id}`);
    await page.click('summary >> text=Adjust >> nth=0');
    await page.fill('[name=windows] >> nth=0', '3/1m');
    await page.click('button >> text=Preview >> nth=0');
    await page.waitForSelector('h1 >> text=Preview');
    await check();
    await submit(page, 'Change the limit');
    await page.waitForSelector('.done');
    await page.goto(`${tabs}/limits`);
    await check();
    await page.click('.rows >> text=mock');
    await page.waitForSelector('h1 >> text=Limits of mock');
    await page.click('summary >> nth=1');
    await page.fill('[name=windows] >> nth=1', 'many');
    await page.click('button >> text=Preview >> nth=1');
    await page.waitForSelector('.summary');
    await check();
    await page.fill('[name=windows] >> nth=1', '2/1m');
    await page.click('button >> text=Preview >> nth=1');
    await page.waitForSelector('h1 >> text=Preview');
    await check();
  });
});

describe.runIf(NIGHTLY).each([
  ['light', 1280],
  ['dark', 320],
] as const)('in %s colours, %i pixels wide, axe finds nothing', (colorScheme, width) => {
  /** An owner, who is signed in, and a new application. */
  async function place() {
    const page = await newPage({ bypassCSP: true, colorScheme, viewport: { width, height: 700 } });
    const member = await newMember('owner');
    const cookie = { name: 'dashboard', value: await rooms.people.sessions.create(member), url };
    await page.context().addCookies([cookie]);
    const { id } = await application('development');
    return { page, path: `${url}/dashboard/applications/${id}`, check: () => checkPage(page, 'en') };
  }
  const openAll = async (page: Page): Promise<void> => {
    for (const summary of await page.locator('summary').all()) await summary.click();
  };

  test('on the pages of webhooks', async () => {
    const { page, path, check } = await place();
    const receiver = await startReceiver();
    await page.goto(`${path}/webhooks`);
    await check();
    await page.fill('[name=url]', 'http://example.com/');
    await submit(page, 'Create the endpoint');
    await page.waitForSelector('.summary');
    await page.click('.summary a >> nth=1');
    await page.waitForSelector('#field-kinds:focus');
    await check();
    const long = `${receiver.url}/${'long'.repeat(40)}?${'query'.repeat(20)}`;
    await page.fill('[name=url]', long);
    await page.check('[name="kinds-account.*"]');
    await page.check('[name="kinds-email.sent"]');
    await submit(page, 'Create the endpoint');
    await page.waitForSelector('.secret');
    await check();
    await page.click('text=I have copied it');
    await page.waitForSelector('text=Nothing was sent to this endpoint');
    await check();
    // The page of the delivery is made again until the endpoint has answered.
    await submit(page, 'Send a test event');
    await page.waitForSelector('.done >> text=the endpoint answered 204');
    receiver.answer((answer) => answer.writeHead(500).end(`<b>${'no-space'.repeat(60)}</b>`));
    await submit(page, 'Redeliver');
    await page.waitForSelector('.summary >> text=the endpoint answered 500');
    await openAll(page);
    await check();
    await page.goto(`${path}/webhooks`);
    await page.click('main .title');
    await page.waitForSelector('.switch');
    await openAll(page);
    await check();
    await page.click('text=Failed only');
    await page.waitForSelector('.switch [aria-current] >> text=Failed only');
    await page.goto(`${path}/webhooks`);
    await check();
  });

  test('on the pages of scopes', async () => {
    const { page, path, check } = await place();
    await page.goto(`${path}/scopes`);
    await check();
    await submit(page, 'Create the scope');
    await page.waitForSelector('.summary');
    await check();
    await page.fill('[name=name]', 'A customer with quite a long name, of some branch in some city');
    await page.fill('[name=reference]', 'r'.repeat(200));
    await submit(page, 'Create the scope');
    await page.waitForSelector('.done');
    await openAll(page);
    await check();
    await page.goto(`${path}/scopes`);
    await check();
  });

  test('on the page of domains', async () => {
    const { page, check } = await place();
    await page.goto(`${url}/dashboard/domains`);
    if ((await page.locator('.empty').count()) > 0) await check();
    else await page.click('summary >> text=Add a domain');
    await page.fill('[name=host]', 'no host');
    await submit(page, 'Add the domain');
    await page.waitForSelector('.summary');
    await check();
    await page.fill('[name=host]', `${'connect'.repeat(8)}${width}.${'long'.repeat(12)}.example`);
    await submit(page, 'Add the domain');
    await page.waitForSelector('.done');
    await page.click('button >> text=Check now >> nth=0');
    await page.waitForSelector('.summary >> text=were not found');
    for (const summary of await page.locator('.asked summary').all()) await summary.click();
    await check();
  });
});
