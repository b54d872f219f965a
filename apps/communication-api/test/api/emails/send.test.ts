import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { newId } from '../../../src/domain/ids.ts';
import { clientOf } from '../../support/client.ts';
import { type Answer, type MailClient, mailClient, type Part, part } from '../../support/mail-client.ts';
import { startService } from '../../support/service.ts';

const service = await startService();
const application = await service.application();
const client = (options?: Parameters<typeof mailClient>[2]): Promise<MailClient> =>
  mailClient(service, application, options);

const setAccount = (id: string, values: { paused_at?: Date | null; status?: 'running' | 'disconnected' }) =>
  service.db
    .updateTable('accounts')
    .set(values)
    .where('id', '=', id)
    .execute()
    .then(() => service.rooms.accounts.forgetRecent());
const limitFields = ({ headers }: Answer): (string | null)[] =>
  ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'retry-after'].map((name) => headers.get(name));
const NONE = [null, null, null, null];
const remaining = ({ headers }: Answer): number => Number(headers.get('x-ratelimit-remaining'));
const problem = (status: number, type: string, detail?: string) => ({
  status,
  json: {
    status,
    type,
    title: expect.any(String),
    req_id: expect.any(String),
    ...(detail && { detail: expect.stringContaining(detail) }),
  },
});

test('EmailSent has exactly its four keys, and the answer its rate-limit fields', async () => {
  const { json } = await client();
  const answer = await json();
  expect(answer.status).toBe(201);
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(answer.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  expect(answer.json).toEqual({
    object: 'EmailSent',
    tracking_id: expect.stringMatching(/^eml_/),
    provider_id: expect.stringMatching(/^mock-\d+$/),
    provider_immutable_id: null,
  });
  // The last window that was checked: all methods, per day.
  expect(limitFields(answer)).toEqual(['5000', '4999', '86400', null]);
});

test('the checks have an order, and what is refused before the provider costs nothing and does not bind the key', async () => {
  const scope = newId('scp', Date.now());
  await service.db
    .insertInto('scopes')
    .values({ id: scope, application_id: application.id, name: 's', status: 'active', created_at: new Date() } as never)
    .execute();
  const scoped = await application.key('scoped', scope);
  const sender = await client();
  const { accountId, json, raw, fields } = sender;
  const before = remaining(await json());
  const foreign = (await mailClient(service, await service.application())).accountId;
  const broken = { account_id: foreign, to: [{ identifier: 'no' }] };
  let round = 0;
  const refused = async (
    attempt: (key: string) => Promise<Answer>,
    expected: object,
    after?: () => Promise<unknown>,
    retry: object = { subject: 'corrected' },
  ) => {
    const key = `order-${round++}`;
    const answer = await attempt(key);
    expect(answer).toMatchObject(expected);
    expect({ round, fields: limitFields(answer) }).toEqual({ round, fields: NONE });
    await after?.();
    expect({ round, ...(await json(retry, key)) }).toMatchObject({ status: 201 });
  };
  // Each request has the faults of all later checks as well.
  await refused((key) => json(broken, key, 'ck_unknown'), problem(401, 'errors/invalid_credentials'));
  await refused(
    (key) => json({ ...broken, account_id: 'x' }, key, scoped),
    problem(404, 'errors/invalid_resource_identifier'),
  );
  await refused((key) => json(broken, key), problem(404, 'errors/invalid_resource_identifier'));
  await refused(
    (key) => json({ ...broken, account_id: accountId }, key, scoped),
    problem(403, 'errors/resource_access_restricted'),
  );
  await setAccount(accountId, { status: 'disconnected', paused_at: new Date() });
  await refused(
    (key) => json({ to: [...fields.to, { identifier: 'no' }], reply_to: 'mock-999' }, key),
    problem(422, 'errors/invalid_recipient', 'to[1].identifier'),
    () => setAccount(accountId, { status: 'running', paused_at: null }),
  );
  const badKey = await raw('application/json', JSON.stringify(fields), { 'idempotency-key': 'k'.repeat(256) });
  expect(badKey).toMatchObject(problem(422, 'errors/unprocessable_entity', 'Idempotency-Key'));
  expect(limitFields(badKey)).toEqual(NONE);
  // From here on the key belongs to the request (another one is a 409), but no answer is stored under it.
  const last = (await json()).json.provider_id ?? '';
  const unborn = `mock-${Number(last.slice('mock-'.length)) + 1}`;
  const lost = async (key: string, expected: object) => {
    const refusal = await json({ reply_to: unborn }, key);
    expect(refusal).toMatchObject(expected);
    expect(limitFields(refusal)).toEqual(NONE);
  };
  await setAccount(accountId, { status: 'disconnected', paused_at: new Date() });
  await lost('late', problem(403, 'errors/action_required'));
  await setAccount(accountId, { paused_at: null });
  await lost('late', problem(401, 'errors/disconnected_account'));
  await setAccount(accountId, { status: 'running' });
  await lost('late', problem(422, 'errors/parent_mail_not_found', 'reply_to'));
  expect(await json({ subject: 'becomes the parent' })).toMatchObject({ json: { provider_id: unborn } });
  expect(await json({ reply_to: unborn }, 'late')).toMatchObject({ status: 201 });
  round += 3;
  expect(remaining(await json())).toBe(before - round - 1);
  const rows = await service.db.selectFrom('sends').select('id').where('account_id', '=', accountId).execute();
  expect(rows.length).toBe(2 + round);
  expect(await sender.delivered()).toBe(2 + round);
});

test('an idempotency key belongs to a request before its account state is looked at', async () => {
  const { accountId, json } = await client();
  const first = await json({}, 'state');
  await setAccount(accountId, { paused_at: new Date() });
  expect((await json({}, 'state')).text).toBe(first.text);
  expect(await json({ subject: 'x' }, 'state')).toMatchObject(problem(409, 'errors/already_used', 'other fields'));
  expect(await json({ subject: 'x' })).toMatchObject(problem(403, 'errors/action_required'));
});

test('a retry with another boundary is the same request, a replay costs nothing, and a changed field is named', async () => {
  const { accountId, form, json, delivered } = await client();
  const file = { name: 'attachments', value: 'hello', filename: 'a.txt', type: 'text/plain' };
  const parts: Part[] = [
    part('account_id', accountId),
    part('to', [{ identifier: 'ann@example.com' }]),
    part('body', 'Hi'),
    part('subject', 'S'),
    file,
  ];
  const first = await form(parts, 'retry', 'b1');
  const before = remaining(await json());
  const again = await form(parts, 'retry', 'another-boundary');
  expect([again.status, again.text, again.headers.get('idempotency-replayed')]).toEqual([201, first.text, 'true']);
  expect(limitFields(again)).toEqual(NONE);
  expect(remaining(await json())).toBe(before - 1);
  const changes: [string, Part[]][] = [
    ['subject differs', parts.map((each) => (each.name === 'subject' ? part('subject', 'T') : each))],
    ['attachments differs', parts.map((each) => (each === file ? { ...file, value: 'hellO' } : each))],
    ['attachments differs', parts.map((each) => (each === file ? { ...file, filename: 'b.txt' } : each))],
    ['other fields', [...parts, part('cc', [])]],
  ];
  for (const [detail, changed] of changes) {
    const answer = await form(changed, 'retry');
    expect({ detail, status: answer.status, ...answer.json }).toMatchObject({
      status: 409,
      type: 'errors/already_used',
    });
    expect(answer.json.detail).toContain(detail);
    expect(limitFields(answer)).toEqual(NONE);
  }
  expect(await delivered()).toBe(3);
});

test('the eleventh send within a minute is refused before the mock, and its key is not bound', async () => {
  const sender = await client();
  const { json, delivered } = sender;
  for (let i = 0; i < 10; i++) expect(await json()).toMatchObject({ status: 201 });
  const answer = await json({}, 'eleventh');
  expect(answer).toMatchObject(problem(429, 'api/too_many_requests'));
  expect(limitFields(answer)).toEqual(['10', '0', expect.stringMatching(/^\d+$/), expect.stringMatching(/^\d+$/)]);
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(await delivered()).toBe(10);
  const rows = await service.db.selectFrom('sends').select('id').where('idempotency_key', '=', 'eleventh').execute();
  expect(rows).toEqual([]);
  // The refusal is not stored under the key: the request is judged again.
  expect(await json({}, 'eleventh')).toMatchObject(problem(429, 'api/too_many_requests'));
});

test('a limit of 0 rejects as the specification says: 429 with retry-after', async () => {
  const own = await service.application();
  const { accountId, json } = await mailClient(service, own);
  const change = { account_id: accountId, route: 'POST /api/v1/emails', windows: ['0/1m'] };
  const { status } = await clientOf(service.url, own.token)('PUT', '/v2/limits', change);
  expect(status).toBe(200);
  const answer = await json({}, 'zero');
  expect(answer).toMatchObject(problem(429, 'api/too_many_requests'));
  expect(limitFields(answer)).toEqual(['0', '0', '60', '60']);
});

test('the provider’s own 429 does not show our numbers', async () => {
  const { json, delivered } = await client();
  const answer = await json({ to: [{ identifier: 'limit@mock.test' }] }, 'limit');
  expect(answer).toMatchObject(problem(429, 'provider/too_many_requests'));
  expect(limitFields(answer)).toEqual(NONE);
  expect(await json({ to: [{ identifier: 'limit@mock.test' }] }, 'limit')).toMatchObject({ status: 429 });
  expect(await delivered()).toBe(0);
});

test('a body is HTML if it has a tag, unless Content-Type says otherwise', async () => {
  const { json, newest } = await client();
  const sent = async (body: string, type?: string) => {
    const custom_headers = type === undefined ? [] : [{ name: 'Content-Type', value: type }];
    expect(await json({ body, custom_headers })).toMatchObject({ status: 201 });
    const { mail, raw } = await newest();
    expect(raw.match(/^Content-Type:/gim)).toHaveLength(mail.html === false ? 1 : 3);
    return { html: mail.html, text: mail.text?.trim() };
  };
  expect(await sent('<p>Hi</p><p>Ann</p>')).toEqual({ html: '<p>Hi</p><p>Ann</p>', text: 'Hi\n\nAnn' });
  expect(await sent('1 < 2 and 3 > 2')).toEqual({ html: false, text: '1 < 2 and 3 > 2' });
  expect(await sent('<b>Hi</b>', 'text/plain; charset=utf-8')).toEqual({ html: false, text: '<b>Hi</b>' });
  expect(await sent('Hi', 'TEXT/HTML')).toEqual({ html: 'Hi', text: 'Hi' });
  expect(await sent('')).toEqual({ html: false, text: '' });
  for (const value of ['text/calendar', 'multipart/mixed', 'html', 'text/html\r\nX: y'])
    expect(await json({ custom_headers: [{ name: 'content-type', value }] })).toMatchObject(
      problem(422, 'errors/invalid_headers', 'custom_headers[0]'),
    );
});

test('from names the sender; without it, the account does', async () => {
  const { accountId, json, newest } = await client();
  const account = await service.rooms.accounts.find(application.id, accountId);
  await json();
  expect((await newest()).mail.from?.value).toEqual([{ address: account?.name, name: '' }]);
  await json({ from: { display_name: 'Mé, "you"' } });
  expect((await newest()).mail.from?.value).toEqual([{ address: account?.name, name: 'Mé, "you"' }]);
  await json({ from: { identifier: 'Sales@Example.com' } });
  expect((await newest()).mail.from?.value).toEqual([{ address: 'Sales@example.com', name: '' }]);
  expect(await json({ from: { identifier: 'x' } })).toMatchObject(
    problem(422, 'errors/unprocessable_entity', 'from.identifier'),
  );
  expect(await json({ from: { name: 'x' } })).toMatchObject(problem(422, 'errors/unprocessable_entity', 'from'));
});

test('to, cc and bcc all get the email, once each, and bcc is in no header', async () => {
  const { json, newest } = await client();
  const box = (name: string) => ({ identifier: `${name}@example.com` });
  await json({ to: [box('a'), box('b')], cc: [box('b'), box('c')], bcc: [box('d')] });
  const { recipients, raw } = await newest();
  expect([...recipients].sort()).toEqual(['a@example.com', 'b@example.com', 'c@example.com', 'd@example.com']);
  expect(raw).not.toContain('d@example.com');
});

test('an answer is threaded by tracking_id and by provider id, across several answers', async () => {
  const { json, newest } = await client();
  const first = await json({ subject: 'Plan' });
  const parent = await newest();
  const byTracking = await json({ reply_to: first.json.tracking_id });
  const answer = await newest();
  expect(answer.mail).toMatchObject({
    subject: 'Re: Plan',
    inReplyTo: parent.mail.messageId,
    references: parent.mail.messageId,
  });
  await json({ reply_to: byTracking.json.provider_id, subject: 'Other' });
  expect((await newest()).mail).toMatchObject({
    subject: 'Other',
    inReplyTo: answer.mail.messageId,
    references: [parent.mail.messageId, answer.mail.messageId],
  });
  const rows = await service.db.selectFrom('mock_messages').select(['thread', 'message_id']).execute();
  const ids = [parent.mail.messageId, answer.mail.messageId, (await newest()).mail.messageId];
  expect(new Set(rows.filter((row) => ids.includes(row.message_id)).map(({ thread }) => thread)).size).toBe(1);
  let last = byTracking.json.tracking_id;
  for (let i = 0; i < 6; i++) last = (await json({ reply_to: last })).json.tracking_id;
  expect((await newest()).mail.subject).toBe('Re: Plan');
});

test('a parent that the account does not have is not found, and an id of no known form is refused', async () => {
  const { json } = await client();
  const other = await client();
  const { tracking_id: foreign, provider_id: foreignId } = (await other.json()).json;
  const failed = await json({ to: [{ identifier: 'error.422.invalid_message@mock.test' }] }, 'failed-parent');
  expect(failed.status).toBe(422);
  const { json: row } = await other.get('/v2/emails?idempotency_key=failed-parent');
  for (const reply_to of [foreign, foreignId, 'mock-999999999', newId('eml', Date.now()), row.id])
    expect({ reply_to, ...(await json({ reply_to })) }).toMatchObject(
      problem(422, 'errors/parent_mail_not_found', 'reply_to'),
    );
  for (const reply_to of ['x', 'eml_x', 'mock-', 'mock-9999999999', '<a@b>', 'é'])
    expect({ reply_to, ...(await json({ reply_to })) }).toMatchObject(
      problem(422, 'errors/parent_mail_invalid_provider_id', 'reply_to'),
    );
});

test('a sent email can be read by its id and by its key, by callers that may see it', async () => {
  const sender = await client();
  const { accountId, json, get } = sender;
  const { tracking_id: id, provider_id } = (await json({}, 'visible key')).json;
  const expected = {
    object: 'Email',
    id,
    account_id: accountId,
    state: 'sent',
    provider_id,
    provider_immutable_id: null,
    message_id: expect.stringMatching(/^<.+@mock\.test>$/),
    rejected: [],
    error: null,
    created_at: expect.stringMatching(/Z$/),
    sent_at: expect.stringMatching(/Z$/),
    tracking: null,
  };
  expect((await get(`/v2/emails/${id}`)).json).toEqual(expected);
  expect((await get('/v2/emails?idempotency_key=visible%20key')).json).toEqual(expected);
  expect((await get('/v2/emails?idempotency_key=%22visible%20key%22')).json).toEqual(expected);
  const scope = newId('scp', Date.now());
  await service.db
    .insertInto('scopes')
    .values({
      id: scope,
      application_id: application.id,
      name: 's2',
      status: 'active',
      created_at: new Date(),
    } as never)
    .execute();
  const scoped = await application.key('scoped', scope);
  const stranger = (await service.application()).token;
  for (const token of [scoped, stranger])
    for (const path of [`/v2/emails/${id}`, '/v2/emails?idempotency_key=visible%20key'])
      expect(await get(path, token)).toMatchObject(problem(404, 'errors/resource_not_found'));
  await service.db.updateTable('accounts').set({ scope_id: scope }).where('id', '=', accountId).execute();
  service.rooms.accounts.forgetRecent();
  expect(await get(`/v2/emails/${id}`, scoped)).toMatchObject({ status: 200 });
  expect(await json({}, 'by scope', scoped)).toMatchObject({ status: 201 });
  expect(await get('/v2/emails/x', 'no')).toMatchObject({ status: 401 });
  for (const path of ['/v2/emails/x', '/v2/emails/%00', '/v2/emails/%ff', `/v2/emails/${id}x`])
    expect({ path, status: (await get(path)).status }).toMatchObject({
      status: expect.toSatisfy((s) => s === 404 || s === 400),
    });
  for (const query of [
    '?idempotency_key=',
    '?idempotency_key=%00',
    `?idempotency_key=${'k'.repeat(256)}`,
    '?idempotency_key=a&idempotency_key=b',
    '?x=1',
  ])
    expect({ query, ...(await get(`/v2/emails${query}`)) }).toMatchObject({ status: 422 });
});

test('recipients that the provider refuses are shown with the email, which the others get', async () => {
  const { json, get } = await client();
  const to = [{ identifier: 'ann@example.com' }, { identifier: 'partial@mock.test' }];
  const sent = await json({ to });
  expect(sent).toMatchObject({ status: 201 });
  expect(Object.keys(sent.json)).toHaveLength(4);
  expect((await get(`/v2/emails/${sent.json.tracking_id}`)).json).toMatchObject({
    state: 'sent',
    rejected: ['partial@mock.test'],
  });
  expect(await json({ to: [{ identifier: 'partial@mock.test' }] })).toMatchObject(
    problem(422, 'errors/recipient_rejected'),
  );
});

test('a lost answer is found again by the key, with drafts and without', async () => {
  for (const drafts of [true, false]) {
    const { json, delivered } = await client({ drafts });
    const to = [{ identifier: 'drop@mock.test' }];
    expect(await json({ to }, `drop-${drafts}`)).toMatchObject(problem(504, 'errors/request_timeout'));
    expect(await json({ to }, `drop-${drafts}`)).toMatchObject({ status: 201 });
    expect(await delivered()).toBe(1);
  }
});

test('two requests at once with one key send one email', async () => {
  const { json, delivered } = await client();
  const to = [{ identifier: 'delay.100@mock.test' }];
  const answers = await Promise.all(Array.from({ length: 8 }, () => json({ to }, 'at once')));
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(201));
  await pause(50);
  expect(await delivered()).toBe(1);
});
