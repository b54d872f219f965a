import { simpleParser } from 'mailparser';
import { describe, expect, test } from 'vitest';
import type { Account } from '../../../src/accounts/accounts.ts';
import { linkAccount } from '../../support/accounts.ts';
import { type Answer, clientOf } from '../../support/client.ts';
import { type GoogleFault, startGoogle } from '../../support/google.ts';
import { startService } from '../../support/service.ts';

const google = await startGoogle();
const service = await startService({ ...google.environment, SEND_TIMEOUT_MS: '5000' });
const application = await service.application();
const client = clientOf(service.url, application.token);
let users = 0;

/** Each user has faults of its own, so the tests run at the same time. */
const faults = new Map<string, (path: string) => GoogleFault | undefined>();
google.fault = ({ user, path }) => (user === undefined ? undefined : faults.get(user)?.(path));
/** The next request of a user to a path. */
const once = (user: string, expected: string, fault: GoogleFault): void => {
  faults.set(user, (path) => {
    if (path !== expected) return undefined;
    faults.delete(user);
    return fault;
  });
};

/** A new Google account, linked, and how it sends. */
async function linked(...permissions: readonly string[]) {
  const email = `user${++users}@gmail.example`;
  google.addUser(email);
  const granted = permissions.length === 0 ? ['compose', 'metadata'] : permissions;
  const scopes = granted.map((name) => `https://www.googleapis.com/auth/gmail.${name}`);
  const account: Account = await linkAccount(service.rooms, application.id, {
    provider: 'google',
    providerUserId: `goog${users}`,
    name: email,
    secret: { credentials: await google.credentials(email, scopes) },
  });
  const send = (key?: string, fields: object = {}): Promise<Answer> =>
    client(
      'POST',
      '/api/v1/emails',
      { account_id: account.id, to: [{ identifier: 'bob@example.com' }], body: 'Hello', ...fields },
      key === undefined ? {} : { 'idempotency-key': key },
    );
  return { email, account, send };
}

/** As a client does that tries again. On a loaded machine, an answer may come later than the deadline. */
async function retried(send: () => Promise<Answer>): Promise<Answer> {
  let answer = await send();
  for (let retries = 0; answer.status >= 429 && retries < 4; retries++) answer = await send();
  return answer;
}

test('an email is sent, and a reply to it by either id is in its conversation', async () => {
  const { email, send } = await linked();
  google.replacesMessageIds = 'silently';
  const first = await send('first', { subject: 'Plan' });
  expect(first).toMatchObject({ status: 201, body: { object: 'EmailSent', provider_immutable_id: null } });
  const [message] = google.sent(email);
  expect(first.body.provider_id).toBe(message?.gmail_id);
  for (const reply_to of [first.body.tracking_id, first.body.provider_id])
    expect(await send(undefined, { reply_to })).toMatchObject({ status: 201 });
  google.replacesMessageIds = 'no';
  const [, ...replies] = google.sent(email);
  expect(replies.map(({ thread_id: thread, mime }) => [thread, /^In-Reply-To: (.*)\r$/m.exec(mime)?.[1]])).toEqual(
    // The Message-ID that recipients see, not the one that Gmail has replaced.
    replies.map(() => [message?.thread_id, message?.message_id]),
  );
  expect(replies.every(({ mime }) => mime.includes('Subject: Re: Plan'))).toBe(true);
});

test('a parent that the account does not have is refused, and nothing is sent', async () => {
  const { email, send } = await linked();
  expect(await send('a', { reply_to: 'msg_unknown' })).toMatchObject({
    status: 422,
    body: { type: 'errors/parent_mail_not_found' },
  });
  expect(await send('b', { reply_to: '<not@gmail.example>' })).toMatchObject({
    status: 422,
    body: { type: 'errors/parent_mail_invalid_provider_id' },
  });
  expect(google.sent(email)).toEqual([]);
});

describe('an email is sent once, whatever happens to one request to Google', () => {
  const PATHS = ['drafts', 'drafts/send'];
  const FAULTS: readonly GoogleFault[] = [
    { kind: 'cut', when: 'before' },
    { kind: 'cut', when: 'in' },
    { kind: 'cut', when: 'after' },
    { kind: 'cut', when: 'in the answer' },
    { kind: 'stall', when: 'before' },
    { kind: 'stall', when: 'after' },
    ...([200, 401, 403, 429, 500, 502] as const).flatMap((status) =>
      (['before', 'after'] as const).map((when) => ({ kind: 'answer', when, status, body: '<html>' }) as const),
    ),
  ];
  const cases = PATHS.flatMap((path) =>
    FAULTS.map((fault) => ({ path, fault, name: [path, ...Object.values(fault)].slice(0, 4).join(' ') })),
  );

  test.concurrent.for(cases)('$name', async ({ path, fault }) => {
    const { email, send } = await linked();
    once(email, path, fault);
    const answer = await retried(() => send(email));
    // What Google refuses as a verdict is not tried again.
    const isRefused = fault.kind === 'answer' && fault.status === 403 && (path === 'drafts' || fault.when === 'before');
    expect(answer.status).toBe(isRefused ? 403 : 201);
    const sent = google.sent(email);
    expect(sent).toHaveLength(isRefused ? 0 : 1);
    if (isRefused) return;
    expect(answer.body.provider_id).toBe(sent[0]?.gmail_id);
    expect(await client('GET', `/v2/emails/${answer.body.tracking_id}`)).toMatchObject({
      body: { state: 'sent', message_id: sent[0]?.message_id },
    });
  });
});

test('a large email that Google stops reading is given up at the deadline, and a retry sends it', async () => {
  const { email, send } = await linked();
  const content = Buffer.alloc(6_000_000, 'large').toString('base64');
  const large = { attachments: [{ filename: 'a.txt', content_type: 'text/plain', content }] };
  once(email, 'drafts', { kind: 'stall', when: 'in' });
  expect(await send(email, large)).toMatchObject({ status: 504, body: { type: 'errors/request_timeout' } });
  expect(await retried(() => send(email, large))).toMatchObject({ status: 201 });
  const [message] = google.sent(email);
  expect((await simpleParser(message?.mime ?? '')).attachments[0]?.size).toBe(6_000_000);
});

test('without the permission for drafts, an email whose answer is lost is not sent again', async () => {
  const { email, send } = await linked('send');
  once(email, 'messages/send', { kind: 'cut', when: 'after' });
  expect(await send(`lost ${email}`)).toMatchObject({ status: 504, body: { type: 'errors/request_timeout' } });
  expect(await send(`lost ${email}`)).toMatchObject({ status: 409, body: { type: 'errors/conflict' } });
  expect(google.sent(email)).toHaveLength(1);
  // Nothing has reached Google in this one.
  once(email, 'messages/send', { kind: 'cut', when: 'before' });
  const large = { attachments: [{ filename: 'a', content: Buffer.alloc(4_000_000).toString('base64') }] };
  expect(await send('early', large)).toMatchObject({ status: 503, body: { type: 'errors/network_down' } });
  expect(await send('early', large)).toMatchObject({ status: 201 });
  expect(google.sent(email)).toHaveLength(2);
});

test('an authorization that has ended is the 401 of a disconnected account', async () => {
  const { email, send } = await linked();
  google.forgetTokens(email, 'all');
  expect(await send('ended')).toMatchObject({ status: 401, body: { type: 'errors/disconnected_account' } });
});

test('a token that has expired is renewed once for several emails at the same time', async () => {
  const { email, account, send } = await linked();
  const { credentials } = service.rooms.accounts.secretOf(account);
  google.forgetTokens(email, 'access');
  const before = google.requests.filter(({ path }) => path === '/oauth2/token').length;
  const answers = await Promise.all([1, 2, 3].map(() => send()));
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 201]);
  expect(google.requests.filter(({ path }) => path === '/oauth2/token').length).toBe(before + 1);
  const stored = await service.rooms.accounts.find(application.id, account.id);
  expect(stored && service.rooms.accounts.secretOf(stored).credentials).not.toEqual(credentials);
});
