import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Discovered } from '../../src/providers/imap/discovery.ts';
import { createImap } from '../../src/providers/imap/imap.ts';
import { launchBrowser } from '../support/chromium.ts';
import { cleanUpLater } from '../support/clean-up.ts';
import { startDovecot } from '../support/dovecot.ts';
import { freePort } from '../support/free-port.ts';
import { checkPage } from '../support/page-checks.ts';
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
/** The application to which users return. */
const app = createServer((_, response) => response.end('back in the application'));
const browser = await launchBrowser();
let callback = '';
beforeAll(async () => {
  await new Promise<void>((resolve) => app.listen(0, '127.0.0.1', resolve));
  callback = `http://127.0.0.1:${(app.address() as AddressInfo).port}/cb`;
});
afterAll(async () => {
  await browser.close();
  app.close();
});

async function createLink(): Promise<string> {
  const answer = await fetch(`${url}/v2/auth/link`, {
    method: 'POST',
    headers: { 'x-api-key': token, 'content-type': 'application/json' },
    body: JSON.stringify({
      providers: ['imap'],
      expires_on: new Date(Date.now() + 600_000).toISOString(),
      redirect_uri: callback,
    }),
  });
  return ((await answer.json()) as { link: string }).link;
}

const go = (page: Page) => page.click('main .card button[type=submit]');
async function logIn(page: Page, address: string, password = ann.password): Promise<void> {
  await page.fill('[name=address]', address);
  await page.fill('[name=password]', password);
  await go(page);
}

test('a person links a mailbox whose server was found with a wrong port', async () => {
  const page = await browser.newPage({ locale: 'en-GB' });
  await page.goto(await createLink());
  await logIn(page, 'moved@example.test');
  await page.waitForURL('**/step/servers');
  // The summary of the faults leads to the field, which says what is wrong.
  await page.click('main a[href="#field-imap_host"]');
  expect(await page.evaluate(() => document.activeElement?.getAttribute('name'))).toBe('imap_host');
  expect(await page.getAttribute('[name=imap_host]', 'aria-invalid')).toBe('true');
  expect(await page.getAttribute('[name=smtp_host]', 'aria-invalid')).toBeNull();
  await page.fill('[name=imap_port]', String(dovecot.imapsPort));
  await go(page);
  await page.waitForURL(`${callback}?**`);
  const id = new URL(page.url()).searchParams.get('account_id') ?? '';
  expect(await rooms.accounts.find(applicationId, id)).toMatchObject({
    provider: 'imap',
    provider_user_id: ann.address,
    name: 'moved@example.test',
  });
  await page.close();
});

test.each([
  ['en', 1_280, 'light'],
  ['de', 320, 'dark'],
] as const)('axe finds nothing on the pages for imap (%s, %i pixels, %s)', async (language, width, colorScheme) => {
  const page = await browser.newPage({
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
  await page.close();
});
