import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { launchBrowser } from 'headgate-testbed/chromium';
import { until } from 'headgate-testbed/redis-server';
import { simpleParser } from 'mailparser';
import { createTransport } from 'nodemailer';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { clientOf } from '../support/client.ts';
import { type Dovecot, type MailUser, startDovecot } from '../support/dovecot.ts';
import { freePort } from '../support/free-port.ts';
import { type MailFaultProxy, startSmtpFaultProxy } from '../support/mail-fault-proxy.ts';
import { authSettings, type Postfix, startPostfix } from '../support/postfix.ts';
import { runProcess } from '../support/service-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { startReceiver, verifyWebhook } from '../support/webhook-receiver.ts';

/** The built service with the policy and the database that it has by default, and servers that others wrote. */
const PATIENCE_MS = 30_000;
const ATTACHMENT_BYTES = 25_000_000;
/** The headers of an email are shorter than this, in bytes. */
const HEADERS = 8_192;
/** What Bob has written to Ann, in a thread that Ann has begun. */
const [FIRST_ID, BOBS_ID] = ['<first@example.test>', '<second@example.test>'];

const receiver = await startReceiver();
/** The application to which users return. */
const app = createServer((_, response) => response.end('back in the application'));
const browser = await launchBrowser();

let dovecot: Dovecot;
let postfix: Postfix;
let proxy: MailFaultProxy;
let ann: MailUser;
let bob: MailUser;
let client: ReturnType<typeof clientOf>;
let url = '';
let token = '';
let callback = '';
let webhookSecret = '';
let accountId = '';

beforeAll(async () => {
  const authPort = Number(await freePort());
  dovecot = await startDovecot(authSettings(authPort));
  ann = dovecot.user('ann@example.test');
  bob = dovecot.user('bob@example.test');
  postfix = await startPostfix(dovecot, authPort, [ann.address, bob.address]);
  const { cert, key, certFile } = inject('certificate');
  proxy = await startSmtpFaultProxy(postfix.submissionsPort, { cert, key });
  await new Promise<void>((resolve) => app.listen(0, '127.0.0.1', resolve));
  callback = `http://127.0.0.1:${(app.address() as AddressInfo).port}/cb`;

  const service = runProcess(['start'], {
    PORT: await freePort(),
    DATA_DIR: temporaryFolder(),
    NODE_EXTRA_CA_CERTS: certFile,
    EGRESS_POLICY: 'link-local',
    EGRESS_PORTS: `${dovecot.imapsPort},${proxy.port}`,
  });
  url = await service.ready();
  [token = ''] = /ck_svc_dev_\S+/.exec(service.printed.out) ?? [];
  client = clientOf(url, token);

  const transport = createTransport({
    ...{ host: 'localhost', port: postfix.submissionsPort, secure: true },
    auth: { user: bob.address, pass: bob.password },
  });
  await transport.sendMail({
    ...{ from: bob.address, to: ann.address, subject: 'The drawings', text: 'Can you send them?' },
    ...{ messageId: BOBS_ID, inReplyTo: FIRST_ID, references: [FIRST_ID] },
  });
  transport.close();
  await until(() => dovecot.emails(ann.address).length === 1, 'the email of Bob arrives', PATIENCE_MS);
});

afterAll(async () => {
  await browser.close();
  app.closeAllConnections();
  app.close();
});

/** The verified events of a type that the endpoint has received, each once. */
const received = (type: string): readonly { readonly id: string; readonly data: object }[] => {
  const events = receiver.requests.map((request) => verifyWebhook(request, webhookSecret));
  return (events as { id: string; type: string; data: object }[]).filter((event) => event.type === type);
};

/** Sends an email as a program does that has a form. */
async function send(fields: Readonly<Record<string, string>>, key: string, file?: Uint8Array<ArrayBuffer>) {
  const body = new FormData();
  body.set('account_id', accountId);
  body.set('to', JSON.stringify([{ identifier: bob.address }]));
  for (const [name, value] of Object.entries(fields)) body.set(name, value);
  if (file !== undefined) body.set('attachments', new Blob([file]), 'drawings.bin');
  const headers = { 'x-api-key': token, 'idempotency-key': key };
  const answer = await fetch(`${url}/api/v1/emails`, { method: 'POST', headers, body });
  return { status: answer.status, body: (await answer.json()) as Record<string, string> };
}

/** The emails of a folder with a subject. */
const withSubject = (address: string, subject: string, folder?: string): readonly string[] =>
  dovecot
    .emails(address, folder)
    .filter((email) => email.slice(0, HEADERS).split(/\r?\n/).includes(`Subject: ${subject}`));

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

test('a person links a Dovecot mailbox in Chromium, and the signed webhook says so', async () => {
  const endpoint = await client('POST', '/v2/webhooks/endpoints', { url: receiver.url, trigger_events: ['*'] });
  webhookSecret = endpoint.body.secret;
  const link = await client('POST', '/v2/auth/link', {
    providers: ['imap'],
    expires_on: new Date(Date.now() + 600_000).toISOString(),
    redirect_uri: callback,
  });
  const page = await browser.newPage({ locale: 'en-GB' });
  await page.goto(link.body.link);
  await page.fill('[name=address]', ann.address);
  await page.fill('[name=password]', ann.password);
  const go = () => page.click('main .card button[type=submit]');
  await go();
  // No name server knows example.test, so the person enters the servers.
  await page.waitForURL('**/step/servers');
  const servers = { imap: dovecot.imapsPort, smtp: proxy.port };
  for (const [half, port] of Object.entries(servers)) {
    await page.fill(`[name=${half}_host]`, 'localhost');
    await page.fill(`[name=${half}_port]`, String(port));
    await page.fill(`[name=${half}_user]`, ann.address);
    await page.check(`[name=${half}_encryption][value=tls]`);
  }
  await go();
  await page.waitForURL(`${callback}?**`);
  accountId = new URL(page.url()).searchParams.get('account_id') ?? '';
  await page.close();
  await expect
    .poll(() => received('account.connected'), { timeout: PATIENCE_MS })
    .toMatchObject([{ account_id: accountId, data: { provider: 'imap' } }]);
});

test('a program replies in a thread with 25 MB attached: it arrives once, is filed once, and the signed webhook arrives', async () => {
  const file = randomBytes(ATTACHMENT_BYTES);
  const fields = { reply_to: BOBS_ID, subject: 'Re: The drawings', body: '<p>Here they are.</p>' };
  const key = randomUUID();
  const sent = await send(fields, key, file);
  expect(sent).toMatchObject({ status: 201, body: { provider_id: expect.stringMatching(/^<.+>$/) } });
  const { tracking_id, provider_id } = sent.body;
  // A retry of the program, with all its bytes, gets the same answer.
  expect(await send(fields, key, file)).toEqual(sent);

  const counts = () => [dovecot.emails(bob.address).length, dovecot.emails(ann.address, 'Sent').length];
  await expect.poll(counts, { timeout: PATIENCE_MS }).toEqual([1, 1]);
  for (const email of [...dovecot.emails(bob.address), ...dovecot.emails(ann.address, 'Sent')]) {
    const { messageId, inReplyTo, references, attachments, from } = await simpleParser(email);
    expect({ messageId, inReplyTo, references, from: from?.text }).toEqual({
      ...{ messageId: provider_id, inReplyTo: BOBS_ID, references: [FIRST_ID, BOBS_ID], from: ann.address },
    });
    expect(attachments.map(({ filename, content }) => [filename, content.length, sha256(content)])).toEqual([
      ['drawings.bin', ATTACHMENT_BYTES, sha256(file)],
    ]);
  }
  await expect
    .poll(() => received('email.sent'), { timeout: PATIENCE_MS })
    .toMatchObject([{ account_id: accountId, data: { tracking_id, provider_id } }]);
});

test('the connection to Postfix is cut, and the program retries with the same key: there is no second email', async () => {
  const key = randomUUID();
  const fields = { subject: 'Cut after the end', body: '<p>Once</p>' };
  proxy.failNext('end', { phase: 'after', kind: 'cut' });
  const first = await send(fields, key);
  expect([proxy.hasFailed, first]).toMatchObject([true, { status: 504, body: { type: 'errors/request_timeout' } }]);
  await expect.poll(() => withSubject(bob.address, fields.subject), { timeout: PATIENCE_MS }).toHaveLength(1);
  // The retry looks for the email in the folder for sent emails, and Postfix files nothing there.
  expect(await send(fields, key)).toMatchObject({ status: 409, body: { type: 'errors/conflict' } });
  await expect.poll(() => received('email.outcome_unknown'), { timeout: PATIENCE_MS }).toHaveLength(1);

  // In the middle of the message, nothing was sent, so the retry sends it.
  const other = { subject: 'Cut in the middle', body: '<p>Once</p>' };
  const [otherKey, file] = [randomUUID(), randomBytes(ATTACHMENT_BYTES)];
  proxy.failNext('body', { phase: 'in', kind: 'cut' });
  expect(await send(other, otherKey, file)).toMatchObject({ status: 503, body: { type: 'errors/network_down' } });
  expect(await send(other, otherKey, file)).toMatchObject({ status: 201 });
  expect(await send({ subject: 'The last', body: '<p>End</p>' }, randomUUID())).toMatchObject({ status: 201 });
  const counts = () => [
    ...[fields.subject, other.subject, 'The last'].map((subject) => withSubject(bob.address, subject).length),
    ...[fields.subject, other.subject, 'The last'].map((subject) => withSubject(ann.address, subject, 'Sent').length),
  ];
  await expect.poll(counts, { timeout: PATIENCE_MS }).toEqual([1, 1, 1, 0, 1, 1]);
  // The reply, and these three: Postfix has taken no other email of Ann.
  expect(postfix.log().match(/ from=<ann@example\.test>, .*\(queue active\)/g)).toHaveLength(4);
  await expect.poll(() => received('email.sent'), { timeout: PATIENCE_MS }).toHaveLength(3);
});
