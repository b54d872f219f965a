import { simpleParser } from 'mailparser';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { Sweeper } from '../../../src/journal/sweeper.ts';
import { linkAccount } from '../../support/accounts.ts';
import { clientOf } from '../../support/client.ts';
import { type Microsoft, type MicrosoftUser, startMicrosoft } from '../../support/microsoft.ts';
import { startService } from '../../support/service.ts';

const microsoft: Microsoft = await startMicrosoft();
const { graph } = microsoft;
let late = 0;
const clock = (): number => Date.now() + late;
const service = await startService(microsoft.environment, { clock });
const application = await service.application();
const call = clientOf(service.url, application.token);
const log = pino({ level: 'silent' });
const SEND = 'me.messages.message.send';

const linked = async (user: MicrosoftUser = microsoft.user()) => {
  const account = await linkAccount(service.rooms, application.id, {
    ...{ provider: 'outlook', providerUserId: user.oid, name: user.email },
    secret: { credentials: microsoft.credentialsOf(user) },
  });
  const send = (fields: object = {}, key?: string) =>
    call(
      'POST',
      '/api/v1/emails',
      { account_id: account.id, to: [{ identifier: 'ann@example.com' }], subject: 'Hello', body: 'Hello', ...fields },
      key === undefined ? {} : { 'idempotency-key': key },
    );
  return { user, account, send, mailbox: user.mailbox };
};

const sweep = async (): Promise<void> => {
  await new Sweeper({ ...service.rooms, log, timeoutMs: 10_000 }).sweep();
};

test('an email is sent once per key, and has both ids', async () => {
  const { send, mailbox } = await linked();
  const first = await send({}, 'once');
  const [sent] = mailbox.list('sentitems');
  expect(first).toMatchObject({
    status: 201,
    body: { object: 'EmailSent', provider_id: sent?.restId, provider_immutable_id: sent?.id },
  });
  expect(await send({}, 'once')).toMatchObject({ status: 201, body: first.body });
  expect(mailbox.delivered).toHaveLength(1);
});

test('Graph answers 504 and has sent: the retry finds the email, and sends no second one', async () => {
  const { send, mailbox } = await linked();
  graph.trouble(SEND, { status: 504, code: 'UnknownError', does: true });
  expect(await send({}, 'late')).toMatchObject({ status: 504, body: { type: 'errors/request_timeout' } });
  const again = await send({}, 'late');
  expect(again).toMatchObject({ status: 201, body: { provider_immutable_id: mailbox.list('sentitems')[0]?.id } });
  expect(mailbox.delivered).toHaveLength(1);
});

test('Graph answers 504 and has not sent: the retry sends the same draft', async () => {
  const { send, mailbox } = await linked();
  graph.trouble(SEND, { status: 504, code: 'UnknownError' });
  expect(await send({}, 'again')).toMatchObject({ status: 504 });
  expect(mailbox.drafts).toHaveLength(1);
  expect(await send({}, 'again')).toMatchObject({ status: 201 });
  expect(mailbox.drafts).toEqual([]);
  expect(mailbox.delivered).toHaveLength(1);
});

test('a mailbox has at most four requests at the same time; the fifth may come back in a second, and is not charged', async () => {
  const { send, mailbox } = await linked();
  let release = (): void => {};
  const isReleased = new Promise<void>((resolve) => {
    release = resolve;
  });
  let held = 0;
  const four = [1, 2, 3, 4].map((number) => {
    graph.before(SEND, () => {
      held++;
      return isReleased;
    });
    return send({}, `held ${number}`);
  });
  await expect.poll(() => held, { timeout: 20_000 }).toBe(4);
  const fifth = await send({}, 'fifth');
  expect(fifth).toMatchObject({ status: 429, body: { type: 'api/too_many_requests' } });
  expect(fifth.headers.get('retry-after')).toBe('1');
  release();
  expect((await Promise.all(four)).map(({ status }) => status)).toEqual([201, 201, 201, 201]);
  expect(await send({}, 'fifth')).toMatchObject({ status: 201 });
  expect(mailbox.delivered).toHaveLength(5);
});

test('a send that Graph limits leaves no draft behind, and pauses its account for as long as Graph says', async () => {
  const [{ send, mailbox }, other] = [await linked(), await linked()];
  graph.trouble(SEND, { status: 429, code: 'ApplicationThrottled', retryAfter: 1 });
  const limited = await send({}, 'limited');
  expect(limited).toMatchObject({ status: 429, body: { type: 'provider/too_many_requests' } });
  expect(limited.headers.get('retry-after')).toBe('1');
  await expect.poll(() => mailbox.drafts).toEqual([]);
  const asked = graph.seen.length;
  const paused = await send({}, 'limited');
  expect(paused).toMatchObject({ status: 429, body: { type: 'provider/too_many_requests' } });
  expect(paused.headers.get('retry-after')).toBe('1');
  expect(graph.seen.length).toBe(asked);
  expect(await other.send()).toMatchObject({ status: 201 });
  await expect.poll(async () => (await send({}, 'limited')).status, { timeout: 10_000 }).toBe(201);
  expect(mailbox.delivered).toHaveLength(1);
});

test('an email that Graph does not show has no ids at first, and the sweeper adds them', async () => {
  const { send, mailbox } = await linked();
  mailbox.sentCopyAfter = 'never';
  const { status, body } = await send();
  expect({ status, ...body }).toMatchObject({ status: 201, provider_id: null, provider_immutable_id: null });
  await sweep();
  const path = `/v2/emails/${body.tracking_id}`;
  expect((await call('GET', path)).body).toMatchObject({ state: 'sent', provider_id: null });
  mailbox.showSent();
  await sweep();
  const [sent] = mailbox.list('sentitems');
  expect((await call('GET', path)).body).toMatchObject({
    ...{ state: 'sent', provider_id: sent?.restId, provider_immutable_id: sent?.id },
  });
});

test('the sweeper looks for the ids of an email for an hour', async () => {
  const { send, mailbox } = await linked();
  mailbox.sentCopyAfter = 'never';
  await send();
  const before = graph.seen.length;
  await sweep();
  expect(graph.seen.length).toBeGreaterThan(before);
  late += 3_600_000;
  const after = graph.seen.length;
  await sweep();
  expect(graph.seen.length).toBe(after);
  late = 0;
});

test('an answer to a received email by Graph’s id, and an answer to that answer', async () => {
  const { send, mailbox } = await linked();
  const item = mailbox.receive('Message-ID: <lunch@example.com>\nSubject: Lunch?\n\nToday?\n');
  const first = await send({ reply_to: item.restId, subject: undefined });
  expect(first).toMatchObject({ status: 201 });
  expect(await send({ reply_to: first.body.tracking_id, subject: undefined })).toMatchObject({ status: 201 });
  const [one, two] = await Promise.all(mailbox.delivered.map(({ mime }) => simpleParser(mime)));
  expect(one).toMatchObject({ subject: 'Re: Lunch?', inReplyTo: '<lunch@example.com>' });
  expect(two).toMatchObject({ subject: 'Re: Lunch?', inReplyTo: one?.messageId });
  expect(new Set(mailbox.list('sentitems').map(({ conversationId }) => conversationId))).toEqual(
    new Set([item.conversationId]),
  );
  expect(await send({ reply_to: 'mock-1' })).toMatchObject({
    ...{ status: 422, body: { type: 'errors/parent_mail_invalid_provider_id' } },
  });
});

test('an authorization that has ended disconnects the account', async () => {
  const { user, account, send, mailbox } = await linked();
  mailbox.expireTokens();
  microsoft.revoke(user);
  expect(await send()).toMatchObject({ status: 401, body: { type: 'errors/disconnected_account' } });
  expect((await call('GET', `/v2/accounts/${account.id}`)).body).toMatchObject({ status: 'disconnected' });
});

test('several sends with an expired token renew it once: Microsoft takes each refresh token once', async () => {
  const { send, mailbox } = await linked();
  mailbox.expireTokens();
  const before = microsoft.renewals();
  const answers = await Promise.all([send(), send(), send()]);
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 201]);
  expect(microsoft.renewals()).toBe(before + 1);
});
