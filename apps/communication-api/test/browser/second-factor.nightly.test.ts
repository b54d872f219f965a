import { checkPage } from 'headgate-testbed/page-checks';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { Authenticator } from '../support/authenticator.ts';
import { startBrowser } from '../support/browser-pages.ts';
import { peopleOf } from '../support/dashboard.ts';
import { secret } from '../support/secret.ts';
import { startService } from '../support/service.ts';

const STEP = 30_000;
let now = Date.now();
const clock = () => now;
const service = await startService({ TRUSTED_PROXIES: 'loopback' }, { clock });
const { url, rooms } = service;
const { newMember, signedIn } = peopleOf(service);
const newPage = await startBrowser();
const submit = (page: Page, label: string) => page.click(`button[type=submit]:visible >> text="${label}"`);

test.each([
  ['light', 1280],
  ['dark', 320],
] as const)('in %s colours, %i pixels wide, axe finds nothing', async (colorScheme, width) => {
  const page = await newPage({
    ...{ bypassCSP: true, colorScheme, reducedMotion: 'reduce', viewport: { width, height: 700 } },
    extraHTTPHeaders: { 'x-forwarded-for': `198.51.100.${width % 250}` },
  });
  const check = () => checkPage(page, 'en');
  const password = secret();
  const { email } = await newMember('owner', password);
  const signIn = async (): Promise<void> => {
    await page.goto(`${url}/dashboard`);
    await page.fill('[name=email]', email);
    await page.fill('[name=password]', password);
    await submit(page, 'Sign in');
  };

  // Another member requires it, so the sign-in leads to the set-up.
  const admin = await signedIn('admin');
  await rooms.people.organizations.requireSecondFactor(
    { id: null, organizationId: admin.member.organization_id, name: 'Operator', role: null },
    'everything',
  );
  await signIn();
  await page.waitForSelector('.note >> text=Your organization requires a second factor');
  await check();
  const app = new Authenticator(await page.content(), clock);
  await page.fill('[name=new_code]', '000000');
  await submit(page, 'Set up the second factor');
  await page.waitForSelector('.summary');
  await check();
  await page.fill('[name=new_code]', app.code());
  await page.fill('[name=password]', password);
  await submit(page, 'Set up the second factor');
  await page.waitForSelector('.codes');
  await check();
  await page.click('text=I have saved them');
  await page.waitForSelector('h1 >> text=Applications');
  await submit(page, 'Sign out');

  now += STEP;
  await signIn();
  await page.waitForSelector('h1 >> text=Enter your code');
  await check();
  await page.click('summary');
  await page.fill('[name=recovery_code]', 'wrong');
  await submit(page, 'Sign in with the recovery code');
  await page.waitForSelector('.summary');
  await check();
  await page.fill('[name=code]', app.code());
  await submit(page, 'Sign in');
  await page.waitForSelector('h1 >> text=Applications');

  const { sessions, secondFactors } = rooms.people;
  const member = (await rooms.people.members.list(admin.member.organization_id)).find((each) => each.email === email);
  if (member === undefined) throw new Error('The member is not in the list.');
  await sessions.create(
    member,
    { hasCode: true },
    { address: '2001:db8:85a3:8d3:1319:8a2e:370:7348', browser: 'Edge' },
  );
  await page.goto(`${url}/dashboard/login/sessions`);
  await page.click('summary');
  await check();
  await submit(page, 'End all other sessions');
  await page.waitForSelector('.done');
  await check();
  await page.goto(`${url}/dashboard/login`);
  await check();
  await page.goto(`${url}/dashboard/login/second-factor`);
  for (const summary of await page.locator('summary').all()) await summary.click();
  await check();
  await page.goto(`${url}/dashboard/members`);
  await page.selectOption('[name=second_factor_for]', 'nobody');
  await submit(page, 'Change');
  await page.waitForSelector('.done');
  const other = await newMember('member');
  await secondFactors.setUp(other, secondFactors.offer(other.id), { step: 1, replaces: undefined, sessionId: '' });
  await page.goto(`${url}/dashboard/members`);
  for (const summary of await page.locator('summary').all()) await summary.click();
  await check();
  await page.goto(`${url}/dashboard/login/second-factor`);
  await page.click('summary >> text=Turn it off');
  now += STEP;
  await page.fill('#field-off-password', password);
  await page.fill('#field-off-code', app.code());
  await submit(page, 'Turn off the second factor');
  await page.waitForSelector('.done >> text=The second factor is turned off.');
  expect(await secondFactors.find(member.id)).toBe(undefined);
});
