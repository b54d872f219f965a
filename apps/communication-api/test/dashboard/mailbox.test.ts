import { expect, test } from 'vitest';
import { linkAccount } from '../support/accounts.ts';
import { clientOf } from '../support/client.ts';
import { peopleOf } from '../support/dashboard.ts';
import { startService } from '../support/service.ts';

const service = await startService({ TRUSTED_PROXIES: 'loopback' });
const { url, application, rooms } = service;
const { signedIn } = peopleOf(service);

const EVIL = '<script>alert(1)</script><img src="https://evil.example/x.gif">';

/** An application with a mock account that sent an email, and a member who looks at it. */
async function place(fields: object = {}) {
  const { id, token } = await application();
  const account = await linkAccount(rooms, id);
  const email = { account_id: account.id, to: [{ identifier: 'ann@example.com' }], subject: 'Hello', body: 'Hi' };
  const sent = await clientOf(url, token)('POST', '/api/v1/emails', { ...email, ...fields });
  expect(sent.text).toContain('EmailSent');
  const { browser } = await signedIn('member');
  const path = `/dashboard/applications/${id}/accounts/${account.id}`;
  return { id, account, browser, path, trackingId: sent.body.tracking_id as string };
}

test('the mailbox of a mock account leads from the account to an email, and to its row in the journal', async () => {
  const { browser, path, trackingId } = await place();
  await browser.open(path);
  expect(browser.page.html).toContain(`href="${path}/mailbox"`);
  await browser.open(`${path}/mailbox`);
  const [, email = ''] = /<a class="title" href="([^"]+)">Hello<\/a>/.exec(browser.page.html) ?? [];
  await browser.open(email);
  expect(browser.text).toMatch(/Hello .*ann@example\.com .*Text .*Hi .*Headers .*Subject: Hello/);
  expect(browser.page.html).not.toContain('<iframe');
  expect(browser.page.html).toContain(`/emails/${trackingId}`);
  await browser.open(email.replace(/\/accounts\/.*/, `/emails/${trackingId}`));
  expect(browser.page.html).toContain(`href="${email}"`);
});

test('the HTML is shown in a frame that can do nothing, and is text on the page', async () => {
  const { browser, path } = await place({ subject: `${EVIL}\u202e`, body: `<p style="color:red">Hi</p>${EVIL}` });
  await browser.open(`${path}/mailbox`);
  expect(browser.page.html).not.toContain('<script');
  const [, email = ''] = /<a class="title" href="([^"]+)">/.exec(browser.page.html) ?? [];
  await browser.open(email);
  expect(browser.page.html).not.toMatch(/<script|<img|\u202e/);
  expect(browser.page.html).toMatch(new RegExp(`<iframe class="email" src="${email}/html" [^>]*sandbox`));
  expect(browser.page.headers.get('content-security-policy')).toMatch(/default-src 'none'.*frame-src 'self'/);
  await browser.open(`${email}/html`);
  expect(browser.page.html).toContain('<p style="color:red">Hi</p>');
  const policy = browser.page.headers.get('content-security-policy') ?? '';
  expect(policy.split('; ')).toEqual(
    expect.arrayContaining(["default-src 'none'", 'img-src data:', "frame-ancestors 'self'"]),
  );
  expect(policy).toMatch(/; sandbox allow-popups allow-popups-to-escape-sandbox$/);
  expect(policy).not.toMatch(/script-src|https:|\*/);
  // No other page may be in a frame, or show one.
  await browser.open(path);
  expect(browser.page.headers.get('content-security-policy')).toMatch(/frame-ancestors 'none'/);
  expect(browser.page.headers.get('content-security-policy')).not.toMatch(/frame-src/);
});

test('a picture of the email is shown in the frame', async () => {
  const picture = { filename: 'logo.png', content_type: 'image/png', content: 'iVBORw0KGgo=' };
  const { browser, path } = await place({ body: '<img src="cid:logo.png">', attachments: [picture] });
  await browser.open(`${path}/mailbox`);
  const [, email = ''] = /<a class="title" href="([^"]+)">/.exec(browser.page.html) ?? [];
  await browser.open(`${email}/html`);
  expect(browser.page.html).toContain('src="data:image/png;base64,iVBORw0KGgo="');
  await browser.open(email);
  expect(browser.text).toContain('logo.png image/png, 8 bytes');
});

test('a long list has pages', async () => {
  const { account, browser, path } = await place();
  const raw = Buffer.from('Subject: Old\r\n\r\nHi');
  const mail = { messageId: '<1@mock.test>', thread: 't', recipients: ['a@x', 'b@x', 'c@x', 'd@x'], raw, size: 20 };
  for (let count = 0; count < 50; count++) await rooms.mockMailbox.deliver(account.id, mail);
  await browser.open(`${path}/mailbox`);
  expect(browser.page.html.match(/class="title"/g)).toHaveLength(50);
  expect(browser.text).toContain('to a@x, b@x, c@x and 1 more');
  const [, older = ''] = /<a href="(\?before=[^"]+)">Older emails/.exec(browser.page.html) ?? [];
  await browser.open(`${path}/mailbox${older}`);
  expect([browser.page.html.match(/class="title"/g)?.length, browser.text]).toEqual([
    1,
    expect.stringContaining('Hello'),
  ]);
});

test('what is not in the mailbox of this account does not exist', async () => {
  const { browser, path, id } = await place();
  const other = await place();
  await other.browser.open(`${other.path}/mailbox`);
  const [, foreign = ''] = /mailbox\/(mock-\d+)/.exec(other.browser.page.html) ?? [];
  const imap = await linkAccount(rooms, id, { provider: 'imap', name: 'ann@example.com' });
  for (const each of [
    ...[`${path}/mailbox/${foreign}`, `${path}/mailbox/${foreign}/html`, `${path}/mailbox/x`],
    ...[`${path}/mailbox/mock-9999999999`, path.replace(/acc_\w+/, imap.id).concat('/mailbox')],
    // An account of another application.
    path.replace(/acc_\w+/, other.account.id).concat('/mailbox'),
  ])
    expect([each, (await browser.request(each)).status]).toEqual([each, 404]);
  await browser.open(path.replace(/acc_\w+/, imap.id));
  expect(browser.page.html).not.toContain('/mailbox"');
});
