import { checkPage } from 'headgate-testbed/page-checks';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import type { Discovered } from '../../src/providers/imap/discovery.ts';
import { createImap } from '../../src/providers/imap/imap.ts';
import { startApplicationSite } from '../support/application-site.ts';
import { startBrowser } from '../support/browser-pages.ts';
import { cleanUpLater } from '../support/clean-up.ts';
import { startDovecot } from '../support/dovecot.ts';
import { freePort } from '../support/free-port.ts';
import { linkMaker } from '../support/links.ts';
import { secret } from '../support/secret.ts';
import { startService } from '../support/service.ts';
import { startSmtpServer } from '../support/smtp-server.ts';

const dovecot = await startDovecot();
const smtp = await startSmtpServer();
const ann = dovecot.user('ann@example.test');
smtp.user(ann.address, ann.password);

const settingsAt = (imapPort: number): Discovered => ({
  kind: 'servers',
  settings: {
    imap: { host: 'localhost', port: imapPort, encryption: 'tls', user: ann.address },
    smtp: { host: 'localhost', port: smtp.tlsPort, encryption: 'tls', user: ann.address },
  },
});
const found: Record<string, Discovered> = {
  'ann@example.test': settingsAt(dovecot.imapsPort),
  'moved@example.test': settingsAt(Number(await freePort())),
  'ann@gmail.com': { kind: 'sign-in', host: 'google' },
};
const imap = createImap(async (address) => found[address] ?? settingsAt(dovecot.imapsPort));
cleanUpLater(() => imap.close());

const { url, application, rooms } = await startService({ PORT: await freePort() }, { providers: [imap] });
const { id: applicationId, token } = await application();
const { callback, returned } = await startApplicationSite();
const newPage = await startBrowser();
const createLink = linkMaker(url, token, { providers: ['imap'], redirect_uri: callback });

const go = (page: Page) => page.click('main .card button[type=submit]');
async function logIn(page: Page, address: string, password = ann.password): Promise<void> {
  await page.fill('[name=address]', address);
  await page.fill('[name=password]', password);
  await go(page);
}

test('a person links a mailbox whose server was found with a wrong port', async () => {
  const page = await newPage();
  await page.goto(await createLink());
  await logIn(page, 'moved@example.test');
  await page.waitForURL('**/step/servers');
  // The summary of the faults leads to the field, which says what is wrong.
  await page.click('main a[href="#field-imap_host"]');
  await page.waitForSelector('[name=imap_host]:focus');
  expect(await page.getAttribute('[name=imap_host]', 'aria-invalid')).toBe('true');
  expect(await page.getAttribute('[name=smtp_host]', 'aria-invalid')).toBeNull();
  await page.fill('[name=imap_port]', String(dovecot.imapsPort));
  await go(page);
  const { account_id } = await returned(page);
  expect(await rooms.accounts.find(applicationId, account_id ?? '')).toMatchObject({
    provider: 'imap',
    provider_user_id: ann.address,
    name: 'moved@example.test',
  });
});

test.each([
  ['en', 1_280, 'light'],
  ['de', 320, 'dark'],
] as const)('axe finds nothing on the pages for imap (%s, %i pixels, %s)', async (language, width, colorScheme) => {
  const page = await newPage({
    bypassCSP: true,
    colorScheme,
    locale: language,
    viewport: { width, height: 700 },
    reducedMotion: 'reduce',
  });
  await page.goto(await createLink());
  await checkPage(page, language);
  await logIn(page, ann.address, secret());
  await page.waitForSelector('[aria-invalid]');
  await checkPage(page, language);
  await logIn(page, 'ann@gmail.com');
  await page.waitForURL('**/step/sign-in');
  await checkPage(page, language);
  await page.check('[value=login]');
  await go(page);
  await page.waitForURL('**/step/login');
  await logIn(page, 'moved@example.test');
  await page.waitForURL('**/step/servers');
  await checkPage(page, language);
});
