import { Readable } from 'node:stream';
import { freePort } from 'headgate-testbed/redis-server';
import { simpleParser } from 'mailparser';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Mailboxes } from '../../../src/providers/imap/connection.ts';
import type { ImapCredentials, MailServer } from '../../../src/providers/imap/credentials.ts';
import { referencesIn } from '../../../src/providers/imap/mailbox.ts';
import { linkAccount } from '../../support/accounts.ts';
import { clientOf } from '../../support/client.ts';
import { type Dovecot, startDovecot } from '../../support/dovecot.ts';
import { authSettings, type Postfix, startPostfix } from '../../support/postfix.ts';
import { type ScriptedSmtp, startScriptedSmtp } from '../../support/scripted-smtp.ts';
import { startService } from '../../support/service.ts';

const APPEND_MAX_BYTES = 2_000_000;
const [ANN, BOB, EVE] = ['ann@example.test', 'bob@example.test', 'eve@example.test'];

const service = await startService({ APPEND_MAX_BYTES: String(APPEND_MAX_BYTES) });
const application = await service.application();
const client = clientOf(service.url, application.token);

let dovecot: Dovecot;
let postfix: Postfix;
let scripted: ScriptedSmtp;
const passwords: Record<string, string> = {};
beforeAll(async () => {
  const authPort = await freePort();
  dovecot = await startDovecot(authSettings(authPort));
  for (const address of [ANN, BOB, EVE]) passwords[address] = dovecot.user(address).password;
  postfix = await startPostfix(dovecot, authPort, [ANN, BOB, EVE]);
  scripted = await startScriptedSmtp();
});
afterAll(() => scripted.close());

/** A linked account of a user of both servers. */
async function link(address: string, smtp: Partial<MailServer> = {}, imap: Partial<MailServer> = {}): Promise<string> {
  const both = { host: 'localhost', user: address, password: passwords[address] ?? '', encryption: 'tls' } as const;
  const credentials: ImapCredentials = {
    imap: { ...both, port: dovecot.imapsPort, ...imap },
    smtp: { ...both, port: postfix.submissionsPort, ...smtp },
  };
  const providerUserId = `${address} ${accounts++}`;
  const given = { provider: 'imap', providerUserId, name: address, secret: { credentials } };
  return (await linkAccount(service.rooms, application.id, given)).id;
}
let accounts = 0;

const sendWith = (accountId: string, fields: object, key?: string) =>
  client(
    'POST',
    '/api/v1/emails',
    { account_id: accountId, to: [{ identifier: BOB }], subject: 'Hello', body: '<p>Hello</p>', ...fields },
    key === undefined ? {} : { 'idempotency-key': key },
  );

/** The flags of the copy of an email. */
async function flagsOf(accountId: string, messageId: string): Promise<readonly string[]> {
  const account = await service.rooms.accounts.find(application.id, accountId);
  if (account === undefined) throw new Error('There is no account.');
  const mailboxes = new Mailboxes();
  try {
    return await mailboxes.withMailbox(
      service.rooms.mailAccounts.of(account),
      AbortSignal.timeout(10_000),
      async (client) => {
        const lock = await client.getMailboxLock('Sent', { readOnly: true });
        try {
          const uids = (await client.search({ header: { 'message-id': messageId } }, { uid: true })) || [];
          const message = await client.fetchOne(String(uids[0]), { flags: true }, { uid: true });
          return message ? [...(message.flags ?? [])].filter((flag) => flag !== '\\Recent') : [];
        } finally {
          lock.release();
        }
      },
    );
  } finally {
    mailboxes.close();
  }
}

const withId = (emails: readonly string[], messageId: string): readonly string[] =>
  emails.filter((text) => text.toLowerCase().includes(`message-id: ${messageId.toLowerCase()}`));
const sentCopies = (address: string, messageId: string) => withId(dovecot.emails(address, 'Sent'), messageId);
const received = (address: string, messageId: string) => withId(dovecot.emails(address), messageId);
/** How many copies of an account's emails are not filed yet. */
const jobs = async (accountId: string): Promise<number> =>
  (await service.db.selectFrom('sent_copies').select('send_id').where('account_id', '=', accountId).execute()).length;

describe('with Postfix and Dovecot', () => {
  test.each(['tls', 'starttls', 'none'] as const)(
    'an email arrives once, and its copy is filed once: %s',
    async (encryption) => {
      const port = encryption === 'tls' ? postfix.submissionsPort : postfix.submissionPort;
      const sender = await link(ANN, { encryption, port });
      const { status, body } = await sendWith(sender, {
        bcc: [{ identifier: EVE }],
        body: '<p>See <a href="https://example.com/offer">this</a></p>',
        tracking_options: { opens: true, links: true },
      });
      expect([status, body]).toEqual([
        201,
        expect.objectContaining({ provider_id: expect.stringMatching(/^<.+@example\.test>$/) }),
      ]);
      const id = body.provider_id;
      await expect
        .poll(() => [received(BOB, id), received(EVE, id), sentCopies(ANN, id)].map((each) => each.length))
        .toEqual([1, 1, 1]);
      const [toBob = ''] = received(BOB, id);
      const [copy = ''] = sentCopies(ANN, id);
      // Recipients see the tracked message without bcc; the sender keeps the message as it was written, with bcc.
      expect(toBob).not.toContain(EVE);
      expect(toBob).toContain('/t/l/');
      expect(copy).not.toContain('/t/l/');
      const { bcc, html, attachments } = await simpleParser(copy);
      expect([bcc, html, attachments]).toMatchObject([
        { value: [{ address: EVE }] },
        '<p>See <a href="https://example.com/offer">this</a></p>',
        [],
      ]);
      await expect.poll(() => jobs(sender)).toBe(0);
      expect(await flagsOf(sender, id)).toEqual(['\\Seen']);
    },
  );

  test('a reply joins the conversation of an email that somebody else has sent', async () => {
    const [ann, bob] = [await link(ANN), await link(BOB)];
    const first = await sendWith(ann, { subject: 'The plan' });
    await expect.poll(() => received(BOB, first.body.provider_id)).toHaveLength(1);
    const second = await sendWith(bob, {
      to: [{ identifier: ANN }],
      reply_to: first.body.provider_id,
      subject: undefined,
    });
    expect(second.status).toBe(201);
    await expect.poll(() => received(ANN, second.body.provider_id)).toHaveLength(1);
    const third = await sendWith(ann, { reply_to: second.body.provider_id, subject: undefined });
    await expect.poll(() => received(BOB, third.body.provider_id)).toHaveLength(1);
    const [text = ''] = received(BOB, third.body.provider_id);
    const { inReplyTo, references, subject } = await simpleParser(text);
    expect({ inReplyTo, references, subject }).toEqual({
      inReplyTo: second.body.provider_id,
      references: [first.body.provider_id, second.body.provider_id],
      subject: 'Re: The plan',
    });
  });

  test('a reply to an email that the mailbox does not have', async () => {
    const answer = await sendWith(await link(ANN), { reply_to: '<nobody-knows@example.com>' });
    expect([answer.status, answer.body.type]).toEqual([422, 'errors/parent_mail_not_found']);
  });

  test.each(['abc', '<a b@example.com>', 'a@example.com', '<a@b> LOGOUT'])(
    'a reply to %j, which is no id of an email',
    async (id) => {
      const answer = await sendWith(await link(ANN), { reply_to: id });
      expect([answer.status, answer.body.type]).toEqual([422, 'errors/parent_mail_invalid_provider_id']);
    },
  );

  test('a recipient who does not exist is refused, and the other one gets the email', async () => {
    const sender = await link(ANN);
    const both = await sendWith(sender, { to: [{ identifier: 'nobody@example.test' }, { identifier: BOB }] });
    expect(both.status).toBe(201);
    const email = await client('GET', `/v2/emails/${both.body.tracking_id}`);
    expect(email.body).toMatchObject({ state: 'sent', rejected: ['nobody@example.test'] });
    const none = await sendWith(sender, { to: [{ identifier: 'nobody@example.test' }] });
    expect([none.status, none.body.type]).toEqual([422, 'errors/recipient_rejected']);
  });

  test('a foreign sender is refused', async () => {
    const answer = await sendWith(await link(ANN), { from: { identifier: BOB } });
    expect([answer.status, answer.body.type]).toEqual([422, 'errors/send_as_denied']);
  });

  test('a wrong password, for both halves of the mailbox and for one', async () => {
    const both = await sendWith(await link(ANN, { password: 'x' }, { password: 'x' }), {});
    expect([both.status, both.body]).toEqual([401, expect.objectContaining({ type: 'errors/invalid_credentials' })]);
    expect(both.body.connectionParams).toEqual({
      ...{ imap_host: 'localhost', imap_port: dovecot.imapsPort, imap_user: ANN, imap_encryption: 'tls' },
      ...{ smtp_host: 'localhost', smtp_port: postfix.submissionsPort, smtp_user: ANN },
    });
    const half = await sendWith(await link(ANN, { password: 'x' }), {});
    expect([half.status, half.body.type]).toEqual([401, 'errors/invalid_credentials_but_valid_account_imap']);
  });

  test('an attachment that is larger than what is stored for its copy', async () => {
    const file = Buffer.alloc(600_000, 'bytes of a file ');
    const attachments = [
      { filename: 'a.bin', content_type: 'application/octet-stream', content: file.toString('base64') },
    ];
    const { body } = await sendWith(await link(ANN), { attachments });
    await expect.poll(() => sentCopies(ANN, body.provider_id)).toHaveLength(1);
    const { attachments: filed } = await simpleParser(sentCopies(ANN, body.provider_id)[0] ?? '');
    expect(filed[0]?.content.equals(file)).toBe(true);
    // Its files are freed then.
    await expect.poll(() => service.rooms.spool.usedBytes).toBe(0);
  });

  test.each([
    ['shorter', 100_000],
    ['longer', 700_000],
  ])('a copy that is %s than it was measured is not filed, and the next one is', async (_, length) => {
    const account = await service.rooms.accounts.find(application.id, await link(EVE));
    const provider = service.rooms.providers.find('imap')?.mail;
    if (provider?.fileCopy === undefined || account === undefined) throw new Error('There is no account.');
    const messageId = `<${length}@example.test>`;
    const message = Buffer.from(`Message-ID: ${messageId}\r\n\r\n${'bytes of a text\r\n'.repeat(40_000)}`);
    const file = (open: () => Readable) => {
      const copy = { messageId, sentAt: new Date(), measure: async () => ({ size: 600_000, open }) };
      return provider.fileCopy?.(copy, service.rooms.mailAccounts.of(account), AbortSignal.timeout(10_000));
    };
    await expect(file(() => Readable.from([message.subarray(0, length)]))).rejects.toThrow(
      'The size of the message changed',
    );
    expect(sentCopies(EVE, messageId)).toEqual([]);
    expect(await file(() => Readable.from([message.subarray(0, 600_000)]))).toBe('filed');
    expect(sentCopies(EVE, messageId)).toHaveLength(1);
  });

  test('a message above APPEND_MAX_BYTES is sent, and not filed', async () => {
    const content = Buffer.alloc(APPEND_MAX_BYTES).toString('base64');
    const attachments = [{ filename: 'a.bin', content_type: 'application/octet-stream', content }];
    const { status, body } = await sendWith(await link(ANN), { attachments });
    expect(status).toBe(201);
    await expect.poll(() => service.rooms.spool.usedBytes).toBe(0);
    expect(service.logged()).toContain('a sent email is too large to be filed');
    expect(sentCopies(ANN, body.provider_id)).toEqual([]);
  });
});

describe('with a server for sending that fails', () => {
  const plain = () => ({ host: '127.0.0.1', port: scripted.port, encryption: 'none' }) as const;

  test('an unknown outcome is resolved if the folder for sent emails shows the email', async () => {
    scripted.script = { end: 'reset' };
    const sender = await link(ANN, plain());
    const first = await sendWith(sender, {}, 'k1');
    expect([first.status, first.body.type]).toEqual([504, 'errors/request_timeout']);
    scripted.script = {};
    const again = await sendWith(sender, {}, 'k1');
    expect([again.status, again.body.type]).toEqual([409, 'errors/conflict']);
    expect(scripted.messages).toHaveLength(1);
    // The server files what it sends, as Gmail and Exchange do.
    const { body: email } = await client('GET', '/v2/emails?idempotency_key=k1');
    expect(email).toMatchObject({ state: 'unknown' });
    const provider = service.rooms.providers.find('imap')?.mail;
    const account = await service.rooms.accounts.find(application.id, sender);
    if (provider?.fileCopy === undefined || account === undefined) throw new Error('There is no account.');
    const message = Buffer.from(`Message-ID: ${email.message_id}\r\n\r\nHello\r\n`);
    const measure = async () => ({ size: message.length, open: () => Readable.from(message) });
    const copy = { messageId: email.message_id, sentAt: new Date(), measure };
    const file = () => provider.fileCopy?.(copy, service.rooms.mailAccounts.of(account), AbortSignal.timeout(10_000));
    expect(await file()).toBe('filed');
    const resolved = await sendWith(sender, {}, 'k1');
    expect([resolved.status, resolved.body.provider_id]).toEqual([201, email.message_id]);
    expect(scripted.messages).toHaveLength(1);
    // A second attempt, such as the one after a crash, files nothing.
    expect(await file()).toBe('found');
    expect(sentCopies(ANN, email.message_id)).toHaveLength(1);
  });

  test('a mailbox that is away for a while gets its copy later', async () => {
    scripted.script = {};
    const sender = await link(ANN, plain());
    await dovecot.kill();
    const { status, body } = await sendWith(sender, {});
    expect(status).toBe(201);
    await expect.poll(() => service.logged()).toContain('a sent email could not be filed yet');
    await dovecot.restart();
    expect(sentCopies(ANN, body.provider_id)).toEqual([]);
    // The log is written before the row. No attempt runs, and the next one is due now.
    const due = service.db
      .updateTable('jobs')
      .set({ next_at: new Date(0) })
      .where('subject', '=', body.tracking_id)
      .where('is_taken', '=', false)
      .returning('subject');
    await expect.poll(() => due.execute()).toHaveLength(1);
    await service.rooms.queue.runDue();
    expect(sentCopies(ANN, body.provider_id)).toHaveLength(1);
    expect(await jobs(sender)).toBe(0);
  });

  test('the copy of a removed account is erased', async () => {
    const sender = await link(ANN, plain(), { port: await freePort() });
    await sendWith(sender, {});
    expect(await jobs(sender)).toBe(1);
    await client('DELETE', `/v2/accounts/${sender}`);
    expect(await jobs(sender)).toBe(0);
  });
});

test('references of a parent are those of RFC 5322', () => {
  expect(referencesIn('References: <a@x>\r\n <b@x>\r\nIn-Reply-To: <c@x>\r\n')).toEqual(['<a@x>', '<b@x>']);
  expect(referencesIn('In-Reply-To: <c@x>\r\n')).toEqual(['<c@x>']);
  expect(referencesIn('In-Reply-To: <c@x> <d@x>\r\n')).toEqual([]);
  expect(referencesIn('X-References: <a@x>\r\n')).toEqual([]);
});
