import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { simpleParser } from 'mailparser';
import { expect, test } from 'vitest';
import { compose, type Draft } from '../../../src/mail/compose.ts';
import { withContentIds } from '../../../src/mail/content-ids.ts';
import type { Attachment, ComposedMail } from '../../../src/mail/mail.ts';
import { GraphContract } from '../../support/graph/contract.ts';
import type { Trouble } from '../../support/graph/double.ts';
import { startMicrosoft } from '../../support/microsoft.ts';

const microsoft = await startMicrosoft();
const { graph } = microsoft;
/** Looks for a sent email without waiting in between. */
const provider = microsoft.provider([0, 0, 0, 0, 0]);
const { signal } = new AbortController();

const SEND = 'me.messages.message.send';
const CREATE = 'me.CreateMessages';
const MIB = 1024 * 1024;

let messages = 0;
/** An email to Ann, with the fields that are given. */
const mailFrom = (address: string, fields: Partial<Draft> = {}): ComposedMail =>
  compose({
    messageId: `<m${++messages}@outlook.test>`,
    date: new Date('2027-01-01T00:00:00Z'),
    from: { address },
    to: [{ address: 'ann@example.com', name: 'Ann' }],
    ...{ cc: [], bcc: [], subject: 'Hello', body: 'Hello Ann', customHeaders: [], attachments: [] },
    ...fields,
  });

const fileOf = (filename: string, size: number): Attachment & { readonly bytes: Buffer } => {
  const bytes = randomBytes(size);
  const file = {
    size,
    open: () => Readable.from(chunksOf(bytes)),
    close: async () => undefined,
    hold: () => async () => undefined,
  };
  return { filename, contentType: 'application/pdf', file, bytes };
};

/** As a disk gives them: the pieces that Graph wants are made of several. */
function* chunksOf(bytes: Buffer): Generator<Buffer> {
  for (let start = 0; start < bytes.length; start += 65_536) yield bytes.subarray(start, start + 65_536);
}

const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** A user with a mailbox and a linked account. */
const newAccount = () => {
  const user = microsoft.user();
  const { mailbox } = user;
  const since = graph.seen.length;
  const account = microsoft.account(user);
  return {
    ...{ user, mailbox, account },
    asked: () => graph.seen.slice(since).map(({ operation }) => operation),
    mail: (fields: Partial<Draft> = {}) => mailFrom(user.email, fields),
    draft: (fields: Partial<Draft> = {}) => provider.draft(mailFrom(user.email, fields), account, signal),
  };
};

/** What a promise was rejected with. */
const errorOf = async (promise: Promise<unknown>) =>
  promise.then(
    (value) => ({ resolved: value }),
    (error: { sent?: string; status?: number; type?: string; retryAfter?: number }) => {
      const { sent, status, type, retryAfter } = error;
      return { sent, status, type, ...(retryAfter === undefined ? {} : { retryAfter }) };
    },
  );

test('an email is made as a draft from its MIME form, and then sent: by both ids it is the one in Sent Items', async () => {
  const { account, mailbox, asked, mail } = newAccount();
  const file = fileOf('report.pdf', 1_000);
  const composed = mail({
    bcc: [{ address: 'bcc@example.com' }],
    body: '<p>Grüße</p>',
    attachments: [file],
    customHeaders: [
      { name: 'X-Campaign', value: '7' },
      { name: 'List-Unsubscribe', value: '<https://example.com/u>' },
    ],
  });
  const draft = await provider.draft(composed, account, signal);
  expect(mailbox.drafts).toHaveLength(1);
  expect(mailbox.delivered).toEqual([]);
  const ids = await provider.sendDraft(draft, account, signal);
  expect(asked()).toEqual([CREATE, 'me.GetMessages', SEND, 'me.GetMessages', 'me.translateExchangeIds']);
  const [sent] = mailbox.list('sentitems');
  expect(ids).toEqual({
    ...{ providerId: sent?.restId, immutableId: sent?.id, thread: sent?.conversationId, rejected: [] },
    messageId: composed.messageId,
  });
  const [delivery, ...others] = mailbox.delivered;
  expect(others).toEqual([]);
  expect(delivery?.recipients).toEqual(['ann@example.com', 'bcc@example.com']);
  const parsed = await simpleParser(delivery?.mime ?? '');
  expect(parsed).toMatchObject({ subject: 'Hello', html: '<p>Grüße</p>', messageId: composed.messageId });
  expect(parsed.headers.get('x-campaign')).toBe('7');
  expect(parsed.attachments.map(({ filename, content }) => [filename, hashOf(content)])).toEqual([
    ['report.pdf', hashOf(file.bytes)],
  ]);
});

test('a file that the body shows by its name is an inline part of the MIME form, and an inline file of the draft', async () => {
  const { account, mailbox, mail } = newAccount();
  const body = '<p><img src="cid:logo.png"> <img src="cid:photo.jpg"></p>';
  for (const size of [1_000, 3 * MIB]) {
    const files = [fileOf('logo.png', 1_000), fileOf('photo.jpg', size), fileOf('report.pdf', 1_000)];
    const attachments = withContentIds(files, body);
    await provider.sendDraft(await provider.draft(mail({ body, attachments }), account, signal), account, signal);
  }
  const [small, large] = mailbox.delivered;
  const parsed = await simpleParser(small?.mime ?? '', { skipImageLinks: true });
  expect(parsed.html).toBe(body);
  expect(parsed.attachments.map(({ filename, cid, related = false }) => [filename, cid, related])).toEqual([
    ['logo.png', 'logo.png', true],
    ['photo.jpg', 'photo.jpg', true],
    ['report.pdf', undefined, false],
  ]);
  expect(large?.attached.map(({ name, contentId }) => [name, contentId])).toEqual([
    ['logo.png', 'logo.png'],
    ['photo.jpg', 'photo.jpg'],
    ['report.pdf', undefined],
  ]);
});

test('files for which a request is too small are added to the draft, in one request or in pieces', async () => {
  const { account, mailbox, asked, mail } = newAccount();
  const files = [
    fileOf('small.pdf', 100_000),
    fileOf('below.pdf', 3 * MIB - 1),
    fileOf('limit.pdf', 3 * MIB),
    fileOf('large.pdf', 10 * MIB + 1),
    fileOf('empty.pdf', 0),
  ];
  const since = graph.seen.length;
  const draft = await provider.draft(mail({ attachments: files, subject: 'Files' }), account, signal);
  await provider.sendDraft(draft, account, signal);
  const [whole, session] = ['me.messages.CreateAttachments', 'me.messages.message.attachments.createUploadSession'];
  expect(asked().slice(0, 12)).toEqual([
    ...[CREATE, whole, whole, session, 'upload', session, ...Array(4).fill('upload'), whole, 'me.GetMessages'],
  ]);
  const [delivery] = mailbox.delivered;
  expect(delivery?.attached.map(({ name, content }) => [name, hashOf(content)])).toEqual(
    files.map(({ filename, bytes }) => [filename, hashOf(bytes)]),
  );
  expect(await simpleParser(delivery?.mime ?? '')).toMatchObject({ subject: 'Files', attachments: [] });
  const sizes = graph.seen.slice(since).flatMap(({ operation, body }) => (operation === 'upload' ? [body.length] : []));
  // Microsoft recommends multiples of 320 KiB, of 4 MB at most.
  const piece = 10 * 320 * 1024;
  expect(sizes).toEqual([3 * MIB, piece, piece, piece, 10 * MIB + 1 - 3 * piece]);
});

test('a text that is too large is refused before anything is asked for', async () => {
  const { draft, asked } = newAccount();
  expect(await errorOf(draft({ body: 'ä'.repeat(1_500_000) }))).toEqual({
    ...{ sent: 'no', status: 422, type: 'errors/limit_exceeded' },
  });
  expect(asked()).toEqual([]);
});

test('a draft whose file is refused is deleted', async () => {
  const { draft, mailbox, asked } = newAccount();
  graph.trouble('upload', { status: 500, code: 'ErrorInternalServerError' });
  const error = await errorOf(draft({ attachments: [fileOf('large.pdf', 4 * MIB)] }));
  expect(error).toEqual({ sent: 'no', status: 500, type: 'errors/provider_error' });
  expect(asked().at(-1)).toBe('me.DeleteMessages');
  expect(mailbox.drafts).toEqual([]);
});

test('another sender is set on the draft, since Graph ignores it in MIME form', async () => {
  const { account, mailbox } = newAccount();
  mailbox.sendAs.add('team@example.com');
  const from = { address: 'team@example.com', name: 'The team' };
  const draft = await provider.draft(mailFrom('x@example.com', { from }), account, signal);
  await provider.sendDraft(draft, account, signal);
  expect(mailbox.delivered).toMatchObject([{ from: 'team@example.com' }]);
  const denied = await provider.draft(mailFrom('boss@example.com'), account, signal);
  expect(await errorOf(provider.sendDraft(denied, account, signal))).toEqual({
    ...{ sent: 'no', status: 422, type: 'errors/send_as_denied' },
  });
  expect(mailbox.delivered).toHaveLength(1);
});

test('the sent email is looked for until Graph shows it', async () => {
  const { account, mailbox, draft } = newAccount();
  mailbox.sentCopyAfter = 3;
  const ids = await provider.sendDraft(await draft(), account, signal);
  expect(ids).toMatchObject({ immutableId: mailbox.list('sentitems')[0]?.id });
});

test('an email that got another id when it was sent is found by its Message-ID', async () => {
  const { account, mailbox, draft } = newAccount();
  mailbox.keepsIds = false;
  const made = await draft();
  const ids = await provider.sendDraft(made, account, signal);
  const [sent] = mailbox.list('sentitems');
  expect(ids).toMatchObject({ immutableId: sent?.id, providerId: sent?.restId });
  expect(made).not.toContain(sent?.id);
  expect(await provider.sendDraft(made, account, signal)).toBeUndefined();
  expect(await provider.find({ messageId: '<other@x>', draft: made }, account, signal)).toEqual(ids);
});

test('a sent email that Graph does not show is sent, without ids; later they are found', async () => {
  const { account, mailbox, draft } = newAccount();
  mailbox.sentCopyAfter = 'never';
  const made = await draft();
  expect(await provider.sendDraft(made, account, signal)).toEqual({
    ...{ providerId: null, immutableId: null, thread: null, rejected: [] },
  });
  const trace = { messageId: '<any@x>', draft: made };
  expect(await provider.find(trace, account, signal)).toBeUndefined();
  mailbox.showSent();
  expect(await provider.find(trace, account, signal)).toMatchObject({ providerId: expect.stringMatching(/^AAMkAS/) });
});

test('an error after the email is out does not hide it', async () => {
  const { account, mailbox, draft } = newAccount();
  graph.trouble('me.translateExchangeIds', { status: 500, code: 'ErrorInternalServerError' });
  expect(await provider.sendDraft(await draft(), account, signal)).toMatchObject({
    ...{ providerId: null, immutableId: mailbox.list('sentitems')[0]?.id },
  });
  const cuts = (count: number) => () => graph.trouble('me.GetMessages', ...Array(count).fill({ cut: 'before' }));
  graph.before(SEND, cuts(4));
  expect(await provider.sendDraft(await draft(), account, signal)).toMatchObject({ immutableId: expect.any(String) });
  graph.before(SEND, cuts(5));
  expect(await provider.sendDraft(await draft(), account, signal)).toMatchObject({
    providerId: null,
    immutableId: null,
  });
  expect(mailbox.delivered).toHaveLength(3);
});

test('a draft is sent once: the second attempt does not ask Graph to send', async () => {
  const { account, mailbox, draft, asked } = newAccount();
  const made = await draft();
  const ids = await provider.sendDraft(made, account, signal);
  expect(await provider.sendDraft(made, account, signal)).toBeUndefined();
  expect(await provider.find({ messageId: '<any@x>', draft: made }, account, signal)).toEqual(ids);
  expect(asked().filter((operation) => operation === SEND)).toHaveLength(1);
  expect(mailbox.delivered).toHaveLength(1);
});

test.each<[string, Trouble, boolean]>([
  ['504 that sent', { status: 504, code: 'UnknownError', does: true }, true],
  ['504 that did not send', { status: 504, code: 'UnknownError' }, false],
  ['503', { status: 503, code: 'ErrorServerBusy' }, false],
  ['a connection that breaks after the send', { cut: 'after' }, true],
  ['a connection that breaks before the send', { cut: 'before' }, false],
])('%s: the outcome is unknown, and the next attempt finds it out without a second email', async (_, trouble, sent) => {
  const { account, mailbox, draft } = newAccount();
  const made = await draft();
  graph.trouble(SEND, trouble);
  expect(await errorOf(provider.sendDraft(made, account, signal))).toEqual({
    ...{ sent: 'unknown', status: 504, type: 'errors/request_timeout' },
  });
  expect(mailbox.delivered).toHaveLength(sent ? 1 : 0);
  const found = await provider.find({ messageId: '<any@x>', draft: made }, account, signal);
  expect(found === undefined).toBe(!sent);
  const again = await provider.sendDraft(made, account, signal);
  expect(again === undefined).toBe(sent);
  expect(mailbox.delivered).toHaveLength(1);
});

/** An error of Graph, and what the service makes of it. By default it is named by its code. */
const refused = (
  code: string,
  status: number,
  expected: { readonly status: number; readonly type: string; readonly retryAfter?: number },
  name = code,
): readonly [string, Trouble, object] => {
  const { retryAfter } = expected;
  return [name, { status, code, ...(retryAfter === undefined ? {} : { retryAfter }) }, expected];
};

const TOO_MANY = { status: 429, type: 'provider/too_many_requests' };
const LIMIT_EXCEEDED = { status: 422, type: 'errors/limit_exceeded' };
const NETWORK_DOWN = { status: 503, type: 'errors/network_down' };
const QUOTA_OF_SENDS = refused('ErrorSubmissionQuotaExceeded', 403, TOO_MANY);
const WRONG_RECIPIENT = refused('ErrorInvalidRecipients', 400, { status: 422, type: 'errors/invalid_recipient' });

test.each([
  refused('ErrorAccessDenied', 403, { status: 403, type: 'errors/insufficient_permissions' }),
  refused('ApplicationThrottled', 429, { ...TOO_MANY, retryAfter: 7 }),
  refused('TooManyRequests', 429, TOO_MANY, '429'),
  QUOTA_OF_SENDS,
  refused('ErrorExceededMessageLimit', 403, TOO_MANY),
  WRONG_RECIPIENT,
  refused('ErrorRecipientLimitExceeded', 400, LIMIT_EXCEEDED),
  refused('ErrorQuotaExceeded', 403, LIMIT_EXCEEDED),
  refused('ErrorMessageSizeExceeded', 413, LIMIT_EXCEEDED),
  refused('', 413, LIMIT_EXCEEDED, '413 of a proxy'),
  refused('ErrorSendAsDenied', 403, { status: 422, type: 'errors/send_as_denied' }),
  refused('MailboxNotEnabledForRESTAPI', 404, { status: 422, type: 'errors/account_configuration_error' }),
  refused('ErrorAccountSuspend', 403, { status: 403, type: 'errors/account_restricted' }),
  refused('ErrorInvalidRequest', 400, { status: 422, type: 'errors/cant_send_message' }, 'another 4xx'),
  refused('ErrorMailboxMoveInProgress', 503, { status: 503, type: 'errors/service_unavailable' }, '503'),
  refused('UnknownError', 502, { status: 500, type: 'errors/provider_error' }, 'another 5xx'),
  ['a connection that breaks', { cut: 'before' }, NETWORK_DOWN],
  ['a connection that breaks after the draft', { cut: 'after' }, NETWORK_DOWN],
] as const)('%s at the draft: nothing was sent', async (_, trouble, expected) => {
  const { draft, mailbox } = newAccount();
  graph.trouble(CREATE, trouble);
  expect(await errorOf(draft())).toEqual({ sent: 'no', ...expected });
  expect(mailbox.delivered).toEqual([]);
});

test.each([
  refused('ApplicationThrottled', 429, { ...TOO_MANY, retryAfter: 3 }, '429'),
  WRONG_RECIPIENT,
  QUOTA_OF_SENDS,
])('%s at the send: nothing was sent', async (_, trouble, expected) => {
  const { account, draft, mailbox } = newAccount();
  const made = await draft();
  graph.trouble(SEND, trouble);
  expect(await errorOf(provider.sendDraft(made, account, signal))).toEqual({ sent: 'no', ...expected });
  expect(mailbox.delivered).toEqual([]);
});

test('an access token that Graph refuses is renewed, and the request is made again', async () => {
  const { account, mailbox, draft } = newAccount();
  mailbox.expireTokens();
  const before = microsoft.renewals();
  const made = await draft();
  expect(microsoft.renewals()).toBe(before + 1);
  await provider.sendDraft(made, account, signal);
  expect(mailbox.delivered).toHaveLength(1);
});

test('an authorization that has ended: the account is disconnected', async () => {
  const { user, mailbox, draft } = newAccount();
  mailbox.expireTokens();
  microsoft.revoke(user);
  expect(await errorOf(draft())).toEqual({ sent: 'no', status: 401, type: 'errors/disconnected_account' });
});

test('a draft is discarded, and an email that was sent from it is not', async () => {
  const { account, mailbox, draft } = newAccount();
  const [unsent, sent] = [await draft(), await draft()];
  expect(await provider.discard(unsent, account, signal)).toBe(true);
  expect(await provider.discard(unsent, account, signal)).toBe(false);
  expect(mailbox.drafts).toHaveLength(1);
  await provider.sendDraft(sent, account, signal);
  expect(await provider.discard(sent, account, signal)).toBe(false);
  expect(mailbox.list('sentitems')).toHaveLength(1);
});

test('an email that is sent while its draft is being discarded stays in Sent Items', async () => {
  const { account, mailbox, draft } = newAccount();
  const made = await draft();
  graph.before('me.DeleteMessages', async () => void (await provider.sendDraft(made, account, signal)));
  expect(await provider.discard(made, account, signal)).toBe(false);
  expect(mailbox.delivered).toHaveLength(1);
  expect(mailbox.list('sentitems')).toHaveLength(1);
});

test('a draft that has left its folder may be on its way, and is not sent again', async () => {
  const { account, mailbox, draft } = newAccount();
  const made = await draft();
  for (const item of mailbox.drafts) item.folder = 'outbox';
  expect(await provider.sendDraft(made, account, signal)).toBeUndefined();
  expect(await provider.discard(made, account, signal)).toBe(false);
  expect(await provider.find({ messageId: '<any@x>', draft: made }, account, signal)).toBeUndefined();
  expect(mailbox.drafts).toHaveLength(1);
});

test('the email that another one answers is read by either id, with its references and its conversation', async () => {
  const { account, mailbox, mail } = newAccount();
  const item = mailbox.receive(
    'Message-ID: <question@example.com>\nReferences: <first@example.com>\n <second@example.com>\nSubject: Lunch?\n\nToday?\n',
  );
  const parent = {
    ...{ messageId: '<question@example.com>', references: ['<first@example.com>', '<second@example.com>'] },
    ...{ subject: 'Lunch?', thread: item.conversationId },
  };
  expect(await provider.parent(item.id, account, signal)).toEqual(parent);
  expect(await provider.parent(item.restId, account, signal)).toEqual(parent);
  const draft = await provider.draft(mail({ parent, subject: undefined }), account, signal);
  expect(await provider.sendDraft(draft, account, signal)).toMatchObject({ thread: item.conversationId });
  const [delivery] = mailbox.delivered;
  expect(Object.fromEntries(delivery?.headers ?? [])).toMatchObject({
    ...{ subject: 'Re: Lunch?', 'in-reply-to': '<question@example.com>' },
    references: '<first@example.com> <second@example.com> <question@example.com>',
  });
});

test('an email that does not exist is no parent, and neither is an id of another form', async () => {
  const { account } = newAccount();
  expect(await provider.parent(`AAMkAD${'x'.repeat(60)}AAA=`, account, signal)).toBeUndefined();
  const wrong = { sent: 'no', status: 422, type: 'errors/parent_mail_invalid_provider_id' };
  for (const id of ['mock-1', '../../users', '<a@b.example>', 'x'.repeat(10_000)])
    expect(await errorOf(provider.parent(id, account, signal))).toEqual(wrong);
  graph.trouble('me.GetMessages', { status: 400, code: 'ErrorInvalidIdMalformed' });
  expect(await errorOf(provider.parent('AAMkAD-not-really-an-id', account, signal))).toEqual(wrong);
});

test('without the permission for drafts, an email is sent in one request, and its ids stay unknown', async () => {
  const user = microsoft.user();
  const { mailbox } = user;
  user.scope = 'openid profile email https://graph.microsoft.com/Mail.Send';
  mailbox.permissions.delete('Mail.ReadWrite');
  const account = microsoft.account(user);
  expect(provider.isFenced(account)).toBe(false);
  const mail = mailFrom(user.email, { bcc: [{ address: 'bcc@example.com' }] });
  expect(await provider.send(mail, account, signal)).toEqual({
    ...{ providerId: null, immutableId: null, thread: null, rejected: [] },
  });
  expect(mailbox.delivered).toMatchObject([{ recipients: ['ann@example.com', 'bcc@example.com'] }]);
  expect(await provider.find({ messageId: mail.messageId, draft: null }, account, signal)).toBeUndefined();
  expect(await provider.parent(`AAMkAD${'x'.repeat(60)}AAA=`, account, signal)).toBeUndefined();
  graph.trouble('me.sendMail', { status: 504, code: 'UnknownError', does: true });
  expect(await errorOf(provider.send(mailFrom(user.email), account, signal))).toMatchObject({
    sent: 'unknown',
    status: 504,
  });
  graph.trouble('me.sendMail', { status: 429, code: 'ApplicationThrottled' });
  expect(await errorOf(provider.send(mailFrom(user.email), account, signal))).toMatchObject({
    sent: 'no',
    status: 429,
  });
  expect(await errorOf(provider.send(mailFrom('other@example.com'), account, signal))).toMatchObject({
    ...{ sent: 'no', type: 'errors/send_as_denied' },
  });
  const large = mailFrom(user.email, { attachments: [fileOf('large.pdf', 4 * MIB)] });
  expect(await errorOf(provider.send(large, account, signal))).toMatchObject({
    sent: 'no',
    type: 'errors/limit_exceeded',
  });
});

test('every operation that was copied from Microsoft’s description is used', () => {
  const used = new Set(graph.seen.map(({ operation }) => operation));
  // The folder is asked for when a mailbox is linked.
  expect(new GraphContract().operations.filter((each) => !used.has(each))).toEqual(['me.GetMailFolders']);
});
