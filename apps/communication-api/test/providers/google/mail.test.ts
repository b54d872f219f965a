import { Readable } from 'node:stream';
import { simpleParser } from 'mailparser';
import { afterEach, describe, expect, test } from 'vitest';
import { readConfig } from '../../../src/config.ts';
import { compose, type Draft } from '../../../src/mail/compose.ts';
import { createGoogle } from '../../../src/providers/google/google.ts';
import type { MailProvider } from '../../../src/providers/provider.ts';
import { type GoogleFault, startGoogle } from '../../support/google.ts';
import { mailAccount } from '../../support/mail-account.ts';

const GMAIL = 'https://www.googleapis.com/auth/gmail.';
const google = await startGoogle();
let now = Date.now();
const [provider] = createGoogle(readConfig(google.environment), () => now);
const mail = provider?.mail as MailProvider;
const signal = AbortSignal.timeout(60_000);
let count = 0;

afterEach(() => {
  google.fault = undefined;
  google.replacesMessageIds = 'no';
  now = Date.now();
});

/** A new user, who has given the permissions. */
const linked = async (...scopes: readonly string[]) => {
  const email = `user${++count}@gmail.example`;
  google.addUser(email);
  const granted = scopes.length === 0 ? ['compose', 'metadata'] : scopes;
  return mailAccount(
    email,
    await google.credentials(
      email,
      granted.map((scope) => GMAIL + scope),
    ),
  );
};
const emailOf = (from: string, given: Partial<Draft> = {}) =>
  compose({
    messageId: `<${++count}@service.example>`,
    date: new Date(now),
    from: { address: from },
    to: [{ address: 'bob@example.com', name: 'Bob' }],
    cc: [],
    bcc: [],
    subject: 'Hello',
    body: 'Hi',
    customHeaders: [],
    attachments: [],
    ...given,
  });
const fileOf = (bytes: Buffer) => ({
  size: bytes.length,
  open: () => Readable.from([bytes]),
  close: async () => undefined,
  hold: () => async () => undefined,
});
const sendAll = async (account: Awaited<ReturnType<typeof linked>>, given: Partial<Draft> = {}) => {
  const composed = emailOf(account.address, given);
  const ids = await mail.sendDraft(await mail.draft(composed, account, signal), account, signal);
  if (ids === undefined) throw new Error('The draft was not sent.');
  return { ...ids, sentAs: composed.messageId };
};
const at = (path: string, fault: GoogleFault, times = Number.POSITIVE_INFINITY): void => {
  let left = times;
  google.fault = (request) => (request.path === path && left-- > 0 ? fault : undefined);
};
const answer = (status: number, body: unknown, when: 'before' | 'after' = 'before'): GoogleFault => ({
  kind: 'answer',
  when,
  status,
  body,
});
const googleError = (code: number, reason: string, message = '', status = '') => ({
  error: { code, message, status, errors: [{ domain: 'global', reason, message }] },
});
const failureOf = async (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => 'no failure',
    (error: unknown) => error,
  );

describe('with drafts', () => {
  test('an email is stored as a draft and sent once: the second attempt finds nothing to send', async () => {
    const account = await linked();
    expect(mail.isFenced(account)).toBe(true);
    const file = Buffer.from([...Array(256).keys()]);
    const composed = emailOf(account.address, {
      bcc: [{ address: 'secret@example.com' }],
      subject: 'Grüße',
      customHeaders: [{ name: 'X-Campaign', value: 'spring' }],
      attachments: [{ filename: 'bytes.bin', contentType: 'application/octet-stream', file: fileOf(file) }],
    });
    const draft = await mail.draft(composed, account, signal);
    expect([google.drafts(account.address), google.sent(account.address)]).toEqual([1, []]);
    const ids = await mail.sendDraft(draft, account, signal);
    const [message] = google.sent(account.address);
    expect(ids).toEqual({
      providerId: message?.gmail_id,
      immutableId: null,
      thread: message?.thread_id,
      messageId: composed.messageId,
      rejected: [],
    });
    const parsed = await simpleParser(message?.mime ?? '');
    expect(parsed).toMatchObject({ subject: 'Grüße', messageId: composed.messageId });
    expect(parsed.headers.get('x-campaign')).toBe('spring');
    expect(parsed.attachments.map(({ filename, content }) => [filename, content])).toEqual([['bytes.bin', file]]);
    // Gmail takes the recipients from the message, and removes this field itself.
    expect(message?.bcc).toBe('secret@example.com');
    expect(await mail.sendDraft(draft, account, signal)).toBeUndefined();
    expect(google.sent(account.address)).toHaveLength(1);
  });

  test('of two attempts at the same time, one sends', async () => {
    const account = await linked();
    const draft = await mail.draft(emailOf(account.address), account, signal);
    const results = await Promise.all([1, 2, 3].map(() => mail.sendDraft(draft, account, signal)));
    expect(results.filter((ids) => ids !== undefined)).toHaveLength(1);
    expect(google.sent(account.address)).toHaveLength(1);
  });

  test('a large attachment is read only as fast as Google takes it', async () => {
    const account = await linked();
    at('drafts', { kind: 'stall', when: 'in' });
    let read = 0;
    async function* endless(): AsyncGenerator<Buffer> {
      for (;;) {
        read += 65_536;
        yield Buffer.alloc(65_536, 65);
        await new Promise(setImmediate);
      }
    }
    const file = {
      size: 1,
      open: () => Readable.from(endless()),
      close: async () => undefined,
      hold: () => async () => undefined,
    };
    const attachments = [{ filename: 'a', contentType: 'text/plain', file }];
    const failure = await failureOf(
      mail.draft(emailOf(account.address, { attachments }), account, AbortSignal.timeout(500)),
    );
    expect(failure).toMatchObject({ sent: 'no', type: 'errors/request_timeout' });
    // What the system buffers for a connection, and no more.
    const before = read;
    expect(before).toBeLessThan(32_000_000);
    // Nobody reads on.
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(read - before).toBeLessThan(1_000_000);
  });

  test('a draft that will not be sent is deleted, and a second time does nothing', async () => {
    const account = await linked();
    const draft = await mail.draft(emailOf(account.address), account, signal);
    expect(await mail.discard(draft, account, signal)).toBe(true);
    expect(await mail.discard(draft, account, signal)).toBe(false);
    expect(google.drafts(account.address)).toBe(0);
    expect(await mail.sendDraft(draft, account, signal)).toBeUndefined();
    expect(await mail.find({ messageId: '<x@y>', draft }, account, signal)).toBeUndefined();
  });

  test.each(['no', 'silently', 'and keeps ours'] as const)(
    'if Gmail replaces the Message-ID (%s), replies name the one that recipients see, and the email is found',
    async (replaces) => {
      google.replacesMessageIds = replaces;
      const account = await linked();
      const composed = emailOf(account.address);
      const draft = await mail.draft(composed, account, signal);
      const trace = { messageId: composed.messageId, draft };
      expect(await mail.find(trace, account, signal)).toBeUndefined();
      const ids = await mail.sendDraft(draft, account, signal);
      const [message] = google.sent(account.address);
      expect(ids?.messageId).toBe(message?.message_id);
      expect(ids?.messageId === composed.messageId).toBe(replaces === 'no');
      expect(await mail.find(trace, account, signal)).toEqual(ids);
    },
  );

  test('in a conversation, only the email itself is found', async () => {
    const account = await linked();
    const first = await sendAll(account);
    const parent = await mail.parent(first.providerId ?? '', account, signal);
    now += 3_600_000;
    const composed = emailOf(account.address, { parent, subject: undefined });
    const draft = await mail.draft(composed, account, signal);
    const trace = { messageId: composed.messageId, draft };
    await mail.discard(draft, account, signal);
    // The draft is gone, and what was sent in its conversation is older.
    expect(await mail.find(trace, account, signal)).toBeUndefined();
    google.replacesMessageIds = 'silently';
    const second = await mail.draft(composed, account, signal);
    const ids = await mail.sendDraft(second, account, signal);
    expect(ids).toMatchObject({ thread: first.thread });
    expect(await mail.find({ ...trace, draft: second }, account, signal)).toEqual(ids);
  });

  test('an email whose Message-ID cannot be read back is sent all the same', async () => {
    const account = await linked();
    google.fault = ({ path }) => (path.startsWith('messages/') ? { kind: 'cut', when: 'before' } : undefined);
    expect(await sendAll(account)).toMatchObject({ providerId: expect.any(String), messageId: undefined });
  });

  test('a conversation that was deleted does not keep its answer from being sent', async () => {
    const account = await linked();
    let left = 1;
    google.fault = ({ path }) =>
      path === 'drafts' && left-- > 0 ? answer(404, googleError(404, 'notFound')) : undefined;
    const parent = { messageId: '<p@x>', references: [], subject: 'Old', thread: 'thr_deleted' };
    const { thread } = await sendAll(account, { parent, subject: undefined });
    expect(thread).not.toBe('thr_deleted');
    expect((await simpleParser(google.sent(account.address)[0]?.mime ?? '')).inReplyTo).toBe('<p@x>');
  });
});

describe('answers', () => {
  test('an email that somebody else has sent is answered in its conversation', async () => {
    const account = await linked();
    const received = google.receive(
      account.address,
      'From: bob@example.com\r\nTo: me@example.com\r\nSubject: Question\r\nMessage-ID: <q2@example.com>\r\n' +
        'References: <q0@example.com>\r\n <q1@example.com>\r\n\r\nWhen?',
    );
    const parent = await mail.parent(received.gmail_id, account, signal);
    expect(parent).toEqual({
      messageId: '<q2@example.com>',
      references: ['<q0@example.com>', '<q1@example.com>'],
      subject: 'Question',
      thread: received.thread_id,
    });
    const { thread } = await sendAll(account, { parent, subject: undefined });
    expect(thread).toBe(received.thread_id);
    const parsed = await simpleParser(google.sent(account.address)[0]?.mime ?? '');
    expect(parsed).toMatchObject({
      subject: 'Re: Question',
      inReplyTo: '<q2@example.com>',
      references: ['<q0@example.com>', '<q1@example.com>', '<q2@example.com>'],
    });
  });

  test('an unknown id, an id of another account and an id of another form have no parent', async () => {
    const [account, other] = [await linked(), await linked()];
    const { providerId } = await sendAll(other);
    expect(await mail.parent('msg_unknown', account, signal)).toBeUndefined();
    expect(await mail.parent(providerId ?? '', account, signal)).toBeUndefined();
    for (const id of ['<a@b.example>', '../profile', 'a b', ''])
      expect(await failureOf(mail.parent(id, account, signal))).toMatchObject({
        status: 422,
        type: 'errors/parent_mail_invalid_provider_id',
      });
  });
});

describe('with the permission to send, and no other', () => {
  test('an email is sent at once, and nothing else is asked for', async () => {
    const account = await linked('send');
    expect(mail.isFenced(account)).toBe(false);
    const before = google.requests.length;
    const ids = await mail.send(emailOf(account.address), account, signal);
    expect(ids).toMatchObject({ providerId: google.sent(account.address)[0]?.gmail_id, messageId: undefined });
    expect(await mail.find({ messageId: '<a@b>', draft: null }, account, signal)).toBeUndefined();
    expect(await mail.parent(ids.providerId ?? '', account, signal)).toBeUndefined();
    expect(google.requests.slice(before).map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST messages/send',
    ]);
  });

  test.each([
    ['before it reads the email', { kind: 'cut', when: 'before' }, 0],
    ['after it has sent the email', { kind: 'cut', when: 'after' }, 1],
    ['in its answer', { kind: 'cut', when: 'in the answer' }, 1],
    ['with a fault of its own', answer(500, {}), 0],
    ['with an answer that is no JSON', answer(200, '<html>', 'after'), 1],
  ] as const)('if Google ends %s, only a whole email may have been sent', async (when, fault, count) => {
    const account = await linked('send');
    at('messages/send', fault);
    // A body that is larger than what the system buffers, so that a connection that ends early is noticed.
    const bytes = Buffer.alloc(20_000_000, 65);
    const attachments = [{ filename: 'a', contentType: 'text/plain', file: fileOf(bytes) }];
    const failure = await failureOf(mail.send(emailOf(account.address, { attachments }), account, signal));
    expect(failure).toMatchObject({ sent: when.startsWith('before') ? 'no' : 'unknown' });
    expect(google.sent(account.address)).toHaveLength(count);
  });
});

describe('errors', () => {
  const ROWS: readonly (readonly [what: string, status: number, body: unknown, expected: object])[] = [
    [
      'a missing permission',
      403,
      googleError(403, 'insufficientPermissions'),
      { status: 403, type: 'errors/insufficient_permissions' },
    ],
    [
      'a missing permission, in the newer form',
      403,
      { error: { code: 403, status: 'PERMISSION_DENIED', details: [{ reason: 'ACCESS_TOKEN_SCOPE_INSUFFICIENT' }] } },
      { status: 403, type: 'errors/insufficient_permissions' },
    ],
    [
      'rateLimitExceeded',
      403,
      googleError(403, 'rateLimitExceeded'),
      { status: 429, type: 'provider/too_many_requests' },
    ],
    [
      'userRateLimitExceeded',
      403,
      googleError(403, 'userRateLimitExceeded'),
      { status: 429, type: 'provider/too_many_requests' },
    ],
    [
      'dailyLimitExceeded',
      403,
      googleError(403, 'dailyLimitExceeded'),
      { status: 429, type: 'provider/too_many_requests' },
    ],
    ['429 without a reason', 429, '', { status: 429, type: 'provider/too_many_requests', retryAfter: undefined }],
    [
      '429 with a time',
      429,
      googleError(429, 'userRateLimitExceeded', `Retry after ${new Date(Date.now() + 600_000).toISOString()}`),
      { status: 429, retryAfter: expect.toSatisfy((seconds: number) => seconds > 500 && seconds <= 601) },
    ],
    [
      '429 with a time that is far away',
      429,
      googleError(429, 'userRateLimitExceeded', 'Retry after 9999-12-31T23:59:59.000Z'),
      { status: 429, retryAfter: undefined },
    ],
    [
      'an account that is restricted',
      403,
      googleError(403, 'domainPolicy'),
      { status: 403, type: 'errors/resource_access_restricted' },
    ],
    [
      'a project without the Gmail API',
      403,
      googleError(403, 'accessNotConfigured'),
      { status: 500, type: 'errors/provider_error' },
    ],
    [
      'a wrong recipient',
      400,
      googleError(400, 'invalidArgument', 'Invalid To header', 'INVALID_ARGUMENT'),
      { status: 422, type: 'errors/invalid_recipient' },
    ],
    [
      'no recipient',
      400,
      googleError(400, 'invalidArgument', 'Recipient address required', 'INVALID_ARGUMENT'),
      { status: 422, type: 'errors/invalid_recipient' },
    ],
    [
      'another bad request',
      400,
      googleError(400, 'invalidArgument', 'Bad'),
      { status: 422, type: 'errors/cant_send_message' },
    ],
    [
      'an account without Gmail',
      400,
      googleError(400, 'failedPrecondition', 'Mail service not enabled', 'FAILED_PRECONDITION'),
      { status: 422, type: 'errors/account_configuration_error' },
    ],
    ['an email that is too large', 413, '<html>', { status: 422, type: 'errors/limit_exceeded' }],
  ];

  test.each(ROWS)('%s: nothing is sent, at the draft and at the send', async (_, status, body, expected) => {
    const account = await linked();
    at('drafts', answer(status, body));
    expect(await failureOf(mail.draft(emailOf(account.address), account, signal))).toMatchObject({
      ...expected,
      sent: 'no',
    });
    google.fault = undefined;
    const draft = await mail.draft(emailOf(account.address), account, signal);
    at('drafts/send', answer(status, body));
    // The draft is still there, which proves it.
    expect(await failureOf(mail.sendDraft(draft, account, signal))).toMatchObject({ ...expected, sent: 'no' });
    expect(google.sent(account.address)).toEqual([]);
  });

  test.each([500, 502, 503, 302, 408])(
    'status %i: before the send nothing was sent, at the send it is not known',
    async (status) => {
      const account = await linked();
      const draft = await mail.draft(emailOf(account.address), account, signal);
      at('drafts/send', answer(status, {}));
      const failure = { status: 500, type: 'errors/provider_error' };
      expect(await failureOf(mail.sendDraft(draft, account, signal))).toMatchObject({ ...failure, sent: 'unknown' });
      at('drafts', answer(status, {}));
      expect(await failureOf(mail.draft(emailOf(account.address), account, signal))).toMatchObject({
        ...failure,
        sent: 'no',
      });
    },
  );

  test('a refusal after the draft was sent is no proof: an earlier attempt has sent it', async () => {
    const account = await linked();
    const composed = emailOf(account.address);
    const draft = await mail.draft(composed, account, signal);
    at('drafts/send', { kind: 'cut', when: 'after' });
    expect(await failureOf(mail.sendDraft(draft, account, signal))).toMatchObject({ sent: 'unknown' });
    at('drafts/send', answer(429, {}));
    expect(await mail.sendDraft(draft, account, signal)).toBeUndefined();
    expect(await mail.find({ messageId: composed.messageId, draft }, account, signal)).toMatchObject({
      providerId: google.sent(account.address)[0]?.gmail_id,
    });
    google.fault = undefined;
    // Nothing can be looked up, so nothing is proved.
    google.forgetTokens(account.address, 'all');
    expect(await failureOf(mail.sendDraft(draft, account, signal))).toMatchObject({
      type: 'errors/disconnected_account',
      sent: 'unknown',
    });
  });

  test('an access token that Google has forgotten is renewed on the way', async () => {
    const account = await linked();
    google.forgetTokens(account.address, 'access');
    expect(await sendAll(account)).toMatchObject({ providerId: expect.any(String) });
    expect(account.renewals()).toBe(1);
    expect(google.sent(account.address)).toHaveLength(1);
  });

  test('the draft of an account whose authorization has ended is not stored', async () => {
    const account = await linked();
    google.forgetTokens(account.address, 'all');
    expect(await failureOf(mail.draft(emailOf(account.address), account, signal))).toMatchObject({
      sent: 'no',
      status: 401,
      type: 'errors/disconnected_account',
    });
  });

  test('a provider that does not answer is left when the deadline is over', async () => {
    const account = await linked();
    at('drafts', { kind: 'stall', when: 'before' });
    const failure = await failureOf(mail.draft(emailOf(account.address), account, AbortSignal.timeout(100)));
    expect(failure).toMatchObject({ sent: 'no', status: 504, type: 'errors/request_timeout' });
  });
});

test('the authorization of a removed account is revoked', async () => {
  const account = await linked();
  await provider?.revoke?.(account, signal);
  google.forgetTokens(account.address, 'access');
  expect(await failureOf(mail.draft(emailOf(account.address), account, signal))).toMatchObject({
    type: 'errors/disconnected_account',
  });
});
