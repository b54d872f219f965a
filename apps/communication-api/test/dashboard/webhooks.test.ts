import { until } from 'headgate-testbed/redis-server';
import { describe, expect, test } from 'vitest';
import { newId } from '../../src/domain/ids.ts';
import { linkAccount } from '../support/accounts.ts';
import { clientOf } from '../support/client.ts';
import { peopleOf } from '../support/dashboard.ts';
import { startService } from '../support/service.ts';
import { startReceiver, verifyWebhook } from '../support/webhook-receiver.ts';

const service = await startService({ TRUSTED_PROXIES: 'loopback' });
const { rooms, db, url, application } = service;
const { signedIn } = peopleOf(service);
const { browser: member } = await signedIn('member');

const secretIn = (html: string): string => /<code>(whsec_[^<]+)<\/code>/.exec(html)?.[1] ?? '';
const idIn = (html: string): string => /\/webhooks\/(whe_\w+)"/.exec(html)?.[1] ?? '';

/** An application for development with an endpoint, which a Member has made, and the receiver behind it. */
async function place(fields: Readonly<Record<string, string>> = {}) {
  const { id, token } = await application();
  const receiver = await startReceiver();
  await member.open(`/dashboard/applications/${id}/webhooks`);
  await member.submit('/webhooks', { url: receiver.url, 'kinds-*': 'on', ...fields });
  expect([member.page.status, secretIn(member.page.html)]).toEqual([200, expect.stringMatching(/^whsec_/)]);
  const endpoint = idIn(member.page.html);
  const path = `/dashboard/applications/${id}/webhooks/${endpoint}`;
  return { id, call: clientOf(url, token), receiver, endpoint, path, secret: secretIn(member.page.html) };
}

/** Opens the page on which the browser is, with its query, until it does not ask to be made again. */
async function untilAnswered(path: string): Promise<void> {
  await until(async () => {
    await member.open(path);
    return member.page.headers.get('refresh') === null;
  }, 'the endpoint has answered');
}

/** Submits a form that has an event delivered, and waits for the answer of the endpoint. */
async function deliver(action: string): Promise<void> {
  const { path, body } = member.form(action);
  const { status, location } = await member.request(path, { method: 'POST', body });
  expect([status, location]).toEqual([303, expect.stringMatching(/\/events\/evt_\w+\?since=whc_\w+$/)]);
  await untilAnswered(location ?? '');
}

test('an endpoint is created; its secret is shown once, and signs a test event, whose answer is shown', async () => {
  const { id, receiver, path, secret, call } = await place({ description: 'CRM' });
  const { data } = (await call('GET', '/v2/webhooks/endpoints')).body;
  expect(data).toMatchObject([{ url: receiver.url, trigger_events: ['*'], description: 'CRM', enabled: true }]);
  await member.open(`/dashboard/applications/${id}/webhooks`);
  expect(member.text).toContain(`CRM Enabled ${receiver.url} * . Nothing was sent in the last 14 days.`);
  await member.open(path);
  expect(member.page.html).not.toContain(secret);
  expect(member.text).toContain('Nothing was sent to this endpoint');
  await deliver('/test');
  expect(member.text).toMatch(/The event is delivered: the endpoint answered 204, after \d+ ms\./);
  const [request] = receiver.requests;
  if (request === undefined) throw new Error('There is no request.');
  expect(verifyWebhook(request, secret)).toMatchObject({ type: 'webhook.test', account_id: null });
  // The payload is shown byte for byte.
  expect(unescaped(member.page.html)).toContain(`<code>${request.body.toString()}</code>`);
  expect(member.text).toContain('The answer had no body.');
  await member.open(path);
  expect(member.text).toMatch(/webhook\.test Delivered .* attempt 1: answered 204/);
  const { browser: admin } = await signedIn('admin');
  await admin.open('/dashboard/audit');
  expect(admin.text).toContain('created a webhook endpoint: CRM');
  expect(admin.text).toContain('sent a test event: CRM');
});

const unescaped = (html: string): string =>
  html.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');

test('a form that is sent twice makes one endpoint, and an endpoint too many is refused', async () => {
  const { id } = await application();
  await member.open(`/dashboard/applications/${id}/webhooks`);
  const { path, body } = member.form('/webhooks', { url: 'https://app.example/', 'kinds-email.sent': 'on' });
  const send = () => member.request(path, { method: 'POST', body });
  expect([(await send()).status, (await send()).status]).toEqual([200, 409]);
  expect(await rooms.endpoints.list(id, PAGE)).toMatchObject([{ trigger_events: ['email.sent'] }]);
  const more = {
    url: 'https://app.example/',
    triggerEvents: ['*'],
    accountIds: null,
    description: null,
    enabled: true,
  };
  for (let i = 1; i < 50; i++) await rooms.endpoints.create(id, more);
  await member.open(`/dashboard/applications/${id}/webhooks`);
  await member.submit('/webhooks', { url: 'https://app.example/mine', 'kinds-*': 'on' });
  expect([member.page.status, member.text]).toEqual([409, expect.stringContaining('has 50 endpoints')]);
  expect(member.page.html).toContain('value="https://app.example/mine"');
});

const PAGE = { limit: 60, offset: 0, before: undefined };

test.each([
  ['an address of another kind', { url: 'ftp://app.example/' }, 'Must be an https address.'],
  ['http to another machine', { url: 'http://192.168.0.1/' }, 'Must be https, or http to a loopback'],
  ['an address with a password', { url: 'https://a:b@app.example/' }, 'Must not have a user name'],
  ['a line break in an address', { url: 'https://app.example/\u0007' }, 'Enter an address'],
  ['no address', { url: '' }, 'Enter an address'],
  ['a long address', { url: `https://app.example/${'x'.repeat(2_000)}` }, 'at most 2000 characters'],
  ['no kind', { 'kinds-*': '' }, 'Choose at least one kind of event.'],
  ['an unknown kind', { 'kinds-*': '', 'kinds-mail.*': 'on' }, 'Choose at least one kind of event.'],
  ['a name with a control character', { description: 'a\u0000b' }, 'Enter text without control characters.'],
])('%s is a fault, in a new endpoint and in a change, and loses nothing', async (_, fields, message) => {
  const { id } = await application();
  const given = { url: 'https://app.example/hooks', description: 'CRM', 'kinds-*': 'on', ...fields };
  const check = (): void => {
    expect([member.page.status, member.text]).toEqual([422, expect.stringContaining(message)]);
    expect(member.page.html).toContain(`name="description" aria-describedby`);
    if (!('description' in fields)) expect(member.page.html).toContain('value="CRM"');
    if (given.url !== '') expect(unescaped(member.page.html)).toContain(`value="${given.url}"`);
  };
  await member.open(`/dashboard/applications/${id}/webhooks`);
  await member.submit('/webhooks', given);
  check();
  const old = { url: 'https://old.example/', triggerEvents: ['*'], accountIds: null, description: null, enabled: true };
  const { endpoint } = await rooms.endpoints.create(id, old);
  await member.open(`/dashboard/applications/${id}/webhooks/${endpoint.id}`);
  await member.submit(`/${endpoint.id}`, given);
  check();
  expect(await rooms.endpoints.list(id, PAGE)).toMatchObject([{ url: 'https://old.example/', trigger_events: ['*'] }]);
});

test('a production application gets no http address', async () => {
  const { id } = await application('production');
  const { browser: admin } = await signedIn('admin');
  await admin.open(`/dashboard/applications/${id}/webhooks`);
  await admin.submit('/webhooks', { url: 'http://localhost:3000/', 'kinds-*': 'on' });
  expect([admin.page.status, admin.text]).toEqual([422, expect.stringContaining('Only development applications')]);
});

test('an endpoint is changed, disabled, enabled and deleted; what the API alone knows stays', async () => {
  const { id, call, path, endpoint } = await place();
  const { id: account } = await linkAccount(rooms, id);
  await call('PATCH', `/v2/webhooks/endpoints/${endpoint}`, { account_ids: [account] });
  const state = async () => (await call('GET', `/v2/webhooks/endpoints/${endpoint}`)).body;
  await member.open(path);
  expect(member.page.html).toContain(`/accounts/${account}"`);
  const changes = { url: 'https://app.example/v2?a=b', description: 'New', 'kinds-*': '', 'kinds-account.*': 'on' };
  await member.submit(`/${endpoint}`, changes);
  expect(member.text).toContain('The endpoint is changed.');
  expect(await state()).toMatchObject({
    ...{ url: changes.url, description: 'New', trigger_events: ['account.*'], account_ids: [account] },
  });
  await member.submit('/disable');
  expect(member.text).toContain('The endpoint was disabled by a person or by the API.');
  expect(await state()).toMatchObject({ enabled: false, disabled_reason: null });
  await member.submit('/enable');
  expect(await state()).toMatchObject({ enabled: true });
  await member.submit('/delete');
  expect(member.text).toContain('The endpoint is deleted.');
  expect((await member.request(path)).status).toBe(404);
});

test('a new secret is shown once, and the one before signs too; a reload makes no third one', async () => {
  const { path, secret, receiver } = await place();
  await member.open(path);
  const { path: action, body } = member.form('/secret');
  const send = () => member.request(action, { method: 'POST', body });
  const next = secretIn((await send()).html);
  expect(next).toMatch(/^whsec_/);
  // The second rotation would end the first secret, with which the receiver verifies.
  const again = await send();
  expect([again.status, again.html]).toEqual([409, expect.stringContaining('got a new secret since you opened')]);
  await member.open(path);
  expect(member.text).toContain('two sign, the one of before until');
  expect(member.text).toContain('The one of before that change ends now.');
  await deliver('/test');
  const [request] = receiver.requests;
  if (request === undefined) throw new Error('There is no request.');
  for (const each of [secret, next]) verifyWebhook(request, each);
});

describe('a delivery', () => {
  test('that fails shows the answer and the next attempt, and a redelivery says what came of it', async () => {
    const { id, path, receiver } = await place();
    receiver.answer((answer) =>
      answer.writeHead(500).end('<script>alert(1)</script>\u202e\u0000</pre>'.padEnd(3_000, 'x')),
    );
    await rooms.events.add(id, { type: 'email.sent', accountId: null, data: { label: '<b>"\'' } }, db);
    await until(() => receiver.requests.length === 1, 'the event is received');
    await until(async () => {
      await member.open(path);
      // The page reads the endpoint before its deliveries, so the first of the two may be the older.
      return member.text.includes('email.sent Failed') && member.text.includes('Every delivery since');
    }, 'the attempt is stored, and shown');
    expect(member.text).toMatch(/attempt 1: answered 500, after \d+ ms\. Next attempt: /);
    const event = /\/events\/(evt_\w+)"/.exec(member.page.html)?.[1] ?? '';
    await member.open(`${path}/events/${event}`);
    expect(member.page.headers.get('refresh')).toBeNull();
    expect(member.text).toContain('The next attempt is at');
    const answer = /&lt;script>alert\(1\)&lt;\/script>\ufffd+&lt;\/pre>x+<\/code>/.exec(member.page.html)?.[0] ?? '';
    expect(answer.length).toBeGreaterThan(900);
    expect(answer.length).toBeLessThan(1_100);
    expect(member.page.html).not.toMatch(/<script|<b>/);
    expect(unescaped(member.page.html)).toContain(`<code>${receiver.requests[0]?.body.toString()}</code>`);

    await deliver('/redeliver');
    expect(member.text).toContain('The event was sent, but not delivered: the endpoint answered 500.');
    receiver.answer(200);
    await deliver('/redeliver');
    expect(member.text).toMatch(/The event is delivered: the endpoint answered 200, after \d+ ms\./);
    expect(receiver.requests.map(({ headers }) => headers['webhook-id'])).toEqual([event, event, event]);
    expect(member.text).not.toContain('The next attempt is at');
    await member.open(`${path}?failed`);
    expect([...member.page.html.matchAll(/>Failed</g)]).toHaveLength(2);
    expect(member.page.html).not.toContain('>Delivered<');
    const { browser: admin } = await signedIn('admin');
    await admin.open('/dashboard/audit');
    expect(admin.text).toContain(`redelivered an event: email.sent ${event}`);
  });

  test('to an endpoint that answers 410 says that nothing follows, and why the endpoint is disabled', async () => {
    const { path, receiver, endpoint, id } = await place();
    receiver.answer(410);
    await member.open(path);
    const { path: redelivery, body } = member.form('/test');
    await deliver('/test');
    await until(async () => (await rooms.endpoints.find(id, endpoint))?.enabled === false, 'it is disabled');
    await member.open(path);
    expect(member.text).toContain('because it answered 410 (Gone)');
    expect((await member.request(redelivery, { method: 'POST', body })).status).toBe(409);
    const event = /\/events\/(evt_\w+)"/.exec(member.page.html)?.[1] ?? '';
    await member.open(`${path}/events/${event}`);
    expect(member.text).toContain('No attempt follows, because the endpoint is disabled.');
    expect(member.page.html).not.toContain('/redeliver"');
    expect(receiver.requests).toHaveLength(1);
  });

  test('has many attempts: a list of older ones, also of those that have failed', async () => {
    const { id, endpoint, path } = await place();
    const now = Date.now();
    for (let i = 0; i < 53; i++)
      await rooms.conversations.add(id, {
        ...{ endpoint_id: endpoint, event_id: newId('evt', now), event_type: 'email.sent', attempt: 1 },
        ...(i === 52
          ? ({ outcome: 'delivered', status: 200, response: '', error: null } as const)
          : ({ outcome: 'failed', status: null, response: null, error: 'unresolved' } as const)),
        ...{ duration_ms: 1, next_attempt_at: null, created_at: new Date(now + i) },
      });
    await member.open(`${path}?failed`);
    const next = /href="(\?before=whc_\w+&(?:amp;)?failed)"/.exec(member.page.html)?.[1] ?? '';
    await member.open(`${path}${next.replace('amp;', '')}`);
    expect([...member.page.html.matchAll(/>Failed</g)]).toHaveLength(2);
    expect(member.text).toContain('the name of the host has no address');
  });
});

test('an address inside the network is reached by no delivery: the policy of the service applies', async () => {
  const strict = await startService({ TRUSTED_PROXIES: 'loopback', EGRESS_POLICY: 'public' });
  const { browser } = await peopleOf(strict).signedIn('member');
  const receiver = await startReceiver();
  receiver.answer((answer) => answer.writeHead(200).end('inside'));
  const { id } = await strict.application();
  await browser.open(`/dashboard/applications/${id}/webhooks`);
  await browser.submit('/webhooks', { url: receiver.url, 'kinds-*': 'on' });
  await browser.open(`/dashboard/applications/${id}/webhooks/${idIn(browser.page.html)}`);
  const { path, body } = browser.form('/test');
  const { location } = await browser.request(path, { method: 'POST', body });
  await until(async () => {
    await browser.open(location ?? '');
    return browser.page.headers.get('refresh') === null;
  }, 'the attempt is made');
  expect(browser.text).toContain('not delivered: the service may not connect to this address or port.');
  expect(browser.text).not.toContain('inside');
  expect(receiver.requests).toEqual([]);
});

test('endpoints, events and deliveries of another application do not exist', async () => {
  const [own, other] = [await place(), await place()];
  await member.open(other.path);
  await deliver('/test');
  const event = other.receiver.requests[0]?.headers['webhook-id'];
  for (const path of [
    `/dashboard/applications/${own.id}/webhooks/${other.endpoint}`,
    `/dashboard/applications/${own.id}/webhooks/${other.endpoint}/events/${event}`,
    `${own.path}/events/${event}`,
    `${own.path}/events/evt_1`,
    `${own.path}/events/%00`,
    `/dashboard/applications/${own.id}/webhooks/whe_%00`,
  ])
    expect([path, (await member.request(path)).status]).toEqual([path, 404]);
});
