import { randomUUID } from 'node:crypto';
import { simpleParser } from 'mailparser';
import { expect, test, vi } from 'vitest';
import { newId } from '../../src/domain/ids.ts';
import { MAX_HITS_PER_SEND, MAX_PENDING } from '../../src/tracking/tracking.ts';
import { startService } from '../support/service.ts';

const ORIGIN = 'https://t.example.com';
const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
const service = await startService({ TRACKING_URL: ORIGIN });
const { url, db, rooms } = service;
const { id: application, token } = await service.application();
const accountOf = async (applicationId: string, drafts = true): Promise<string> => {
  const providerUserId = randomUUID();
  const account = await rooms.accounts.insert(applicationId, {
    ...{ provider: 'mock', providerUserId, name: 'me@mock.test', scopeId: null },
    secret: { credentials: { drafts } },
  });
  return account?.id ?? '';
};

/** An account of its own for most sends: each one may send only a few emails per minute. */
const post = async (fields: object, headers: Record<string, string> = {}) =>
  fetch(`${url}/api/v1/emails`, {
    method: 'POST',
    headers: { 'x-api-key': token, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({
      account_id: await accountOf(application),
      to: [{ identifier: 'ann@example.com' }],
      ...fields,
    }),
  });

/** Sends an email, and reads what the mock has received. */
async function send(fields: object, headers: Record<string, string> = {}) {
  const answer = await post(fields, headers);
  const body = (await answer.json()) as { tracking_id: string; detail?: string };
  expect(body.detail).toBeUndefined();
  const id = body.tracking_id;
  const row = await rooms.sends.records.byId(application, id);
  const message = await db
    .selectFrom('mock_messages')
    .select('raw')
    .where('message_id', '=', row?.message_id ?? '')
    .executeTakeFirstOrThrow();
  const { html, text } = await simpleParser(Buffer.from(message.raw));
  return { id, html: html === false ? '' : html, text: text ?? '' };
}

const links = (html: string): string[] => [...html.matchAll(/href="([^"]*)"/g)].map(([, href = '']) => href);
const pixelOf = (html: string): string => /<img src="([^"]*)"/.exec(html)?.[1] ?? '';

/** Asks the service for an address under its public origin. */
const visit = (address: string, { method = 'GET', agent = BROWSER, headers = {} } = {}) =>
  fetch(address.replace(ORIGIN, url), { method, redirect: 'manual', headers: { 'user-agent': agent, ...headers } });

const emailOf = async (id: string) =>
  (await (await fetch(`${url}/v2/emails/${id}`, { headers: { 'x-api-key': token } })).json()) as { tracking: unknown };

const expectTracking = (id: string, tracking: object) =>
  expect.poll(async () => (await emailOf(id)).tracking).toEqual(tracking);

const hitsOf = (id: string) =>
  db.selectFrom('tracking_hits').selectAll().where('send_id', '=', id).orderBy('id').execute();

test('a tracked email leads to the very targets of its links, and counts its opens and clicks', async () => {
  const target = 'https://shop.example/{path}?a=1&b=%20#c';
  const { id, html, text } = await send({
    body: `<html><body><a href="${target.replace('&', '&amp;')}">shop</a> <a href="mailto:a@b.example">mail</a></body></html>`,
    tracking_options: { opens: true, links: true, label: 'welcome' },
  });
  const [link = '', mail] = links(html);
  expect(link).toMatch(/^https:\/\/t\.example\.com\/t\/l\/[\w-]+$/);
  expect(mail).toBe('mailto:a@b.example');
  expect(text).toContain(`shop [${target}]`);
  expect(text).not.toContain(ORIGIN);
  expect((await emailOf(id)).tracking).toEqual({ label: 'welcome', opens: 0, clicks: 0 });

  const followed = await visit(link);
  expect(followed.status).toBe(302);
  expect(followed.headers.get('location')).toBe(target);
  expect(followed.headers.get('cache-control')).toBe('no-store');
  await expectTracking(id, { label: 'welcome', opens: 0, clicks: 1 });

  const pixel = await visit(pixelOf(html));
  expect(pixel.status).toBe(200);
  expect(pixel.headers.get('content-type')).toBe('image/gif');
  expect(pixel.headers.get('cache-control')).toBe('no-store');
  expect(Buffer.from(await pixel.arrayBuffer()).toString('latin1', 0, 10)).toBe('GIF89a\x01\x00\x01\x00');
  await expectTracking(id, { label: 'welcome', opens: 1, clicks: 1 });
});

test('requests of programs are answered and stored with their class, and are not counted', async () => {
  const { id, html } = await send({
    body: '<a href="https://a.example/1">1</a><a href="https://a.example/2">2</a>',
    tracking_options: { opens: true, links: true },
  });
  const [, second = ''] = links(html);
  const head = await visit(second, { method: 'HEAD' });
  expect([head.status, head.headers.get('location')]).toEqual([302, 'https://a.example/2']);
  expect((await visit(second, { agent: 'curl/8.5.0' })).status).toBe(302);
  expect((await visit(pixelOf(html), { method: 'HEAD' })).status).toBe(200);
  expect((await visit(pixelOf(html), { agent: 'Mozilla/5.0 (via ggpht.com GoogleImageProxy)' })).status).toBe(200);
  expect((await visit(pixelOf(html), { headers: { 'sec-purpose': 'prefetch' } })).status).toBe(200);
  await visit(second);
  await expectTracking(id, { label: null, opens: 0, clicks: 1 });
  await expect.poll(() => hitsOf(id)).toHaveLength(6);
  const hits = await hitsOf(id);
  expect(hits.map(({ kind, link_no: no, class: visitor }) => `${kind} ${no} ${visitor}`).sort()).toEqual([
    'link 2 person',
    'link 2 scanner',
    'link 2 scanner',
    'open null mail_proxy',
    'open null scanner',
    'open null scanner',
  ]);
  const columns = ['application_id', 'at', 'class', 'id', 'kind', 'link_no', 'send_id'];
  expect(Object.keys(hits[0] ?? {}).sort()).toEqual(columns);
});

test('an email that asked for no tracking stays as it is, also if it has a label', async () => {
  const body = '<a href="https://a.example/" data-disable-tracking>1</a>';
  const { id, html } = await send({ body, tracking_options: { label: 'x', opens: false } });
  expect(html.trim()).toBe(body);
  expect((await emailOf(id)).tracking).toBeNull();
});

test('only what was asked for is tracked', async () => {
  const body = '<a href="https://a.example/">1</a>';
  const opens = await send({ body, tracking_options: { opens: true } });
  expect(links(opens.html)).toEqual(['https://a.example/']);
  expect((await emailOf(opens.id)).tracking).toEqual({ label: null, opens: 0, clicks: null });
  const clicks = await send({ body, tracking_options: { links: true } });
  expect(clicks.html).not.toContain('<img');
  expect((await emailOf(clicks.id)).tracking).toEqual({ label: null, opens: null, clicks: 0 });
});

test('a plain text body stays as it is, also if tracking is asked for', async () => {
  const body = 'See https://a.example/ < 3';
  const { id, html, text } = await send({ body, tracking_options: { opens: true, links: true } });
  expect([html, text.trim()]).toEqual(['', body]);
  expect((await emailOf(id)).tracking).toEqual({ label: null, opens: 0, clicks: 0 });
  const typed = await send({
    body: '<a href="https://a.example/">1</a>',
    custom_headers: [{ name: 'Content-Type', value: 'text/plain' }],
    tracking_options: { links: true },
  });
  expect(typed.text).toContain('href="https://a.example/"');
});

test('the unsubscribe link of the header stays as it is', async () => {
  const { html } = await send({
    body: '<a href="https://a.example/leave?x=1">leave</a><a href="https://a.example/">stay</a>',
    custom_headers: [{ name: 'List-Unsubscribe', value: '<mailto:u@a.example>, <https://a.example/leave?x=1>' }],
    tracking_options: { links: true },
  });
  expect(links(html)).toEqual(['https://a.example/leave?x=1', expect.stringContaining(`${ORIGIN}/t/l/`)]);
});

test('an unknown, changed or misplaced token is a page with status 404, and no redirect', async () => {
  const { html } = await send({
    body: '<a href="https://a.example/">1</a>',
    tracking_options: { opens: true, links: true },
  });
  const [link = ''] = links(html);
  const changed = link.slice(0, -1) + (link.endsWith('A') ? 'B' : 'A');
  const misplaced = pixelOf(html).replace('/t/o/', '/t/l/');
  const addresses = [`${ORIGIN}/t/l/`, `${ORIGIN}/t/l/x`, `${ORIGIN}/t/o/x`, changed, misplaced, `${link}/x`];
  for (const address of addresses) {
    const answer = await visit(address);
    expect([answer.status, answer.headers.get('location')]).toEqual([404, null]);
    expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(await answer.text()).toContain('This link does not work');
  }
});

test('the longest link that is tracked reaches its target', async () => {
  const target = `https://a.example/${'x'.repeat(2_030)}`;
  const { html } = await send({ body: `<a href="${target}">1</a>`, tracking_options: { links: true } });
  expect((await visit(links(html)[0] ?? '')).headers.get('location')).toBe(target);
});

test('after an attempt that failed, the links of the retry have the id of the retry', async () => {
  const headers = { 'idempotency-key': randomUUID() };
  const account_id = await accountOf(application);
  const body = '<a href="https://a.example/">1</a>';
  const fields = { account_id, body, tracking_options: { links: true } };
  // The email of the first attempt cannot be made.
  const compose = vi.spyOn(rooms.tracking.tokens, 'sealLink').mockImplementationOnce(() => {
    throw new Error('The first attempt fails.');
  });
  expect((await post(fields, headers)).status).toBe(500);
  compose.mockRestore();
  const found = await fetch(`${url}/v2/emails?idempotency_key=${headers['idempotency-key']}`, {
    headers: { 'x-api-key': token },
  });
  expect(found.status).toBe(404);
  const { id, html } = await send(fields, headers);
  await visit(links(html)[0] ?? '');
  await expectTracking(id, { label: null, opens: null, clicks: 1 });
});

test('custom_domain is the host of the links if it is a verified tracking domain of the application', async () => {
  const other = await service.application();
  const domain = (host: string, applicationId = application, purpose = 'tracking', status = 'verified') =>
    db
      .insertInto('domains')
      .values({
        ...{ id: newId('dom', Date.now()), application_id: applicationId, host, created_at: new Date() },
        ...{ purpose: purpose as 'tracking', status: status as 'verified' },
      })
      .execute();
  await domain('links.example.org');
  await domain('pending.example.org', application, 'tracking', 'pending');
  await domain('auth.example.org', application, 'auth');
  await domain('other.example.org', other.id);
  const fields = (host: string, options: object = { links: true, opens: true }) => ({
    body: '<a href="https://a.example/">1</a>',
    tracking_options: { ...options, custom_domain: host },
  });
  const { id, html } = await send(fields('Links.Example.org'));
  expect(links(html)[0]).toMatch(/^https:\/\/links\.example\.org\/t\/l\//);
  expect(pixelOf(html)).toMatch(/^https:\/\/links\.example\.org\/t\/o\//);
  await visit((links(html)[0] ?? '').replace('https://links.example.org', ORIGIN));
  await expectTracking(id, { label: null, opens: 0, clicks: 1 });
  for (const host of ['pending.example.org', 'auth.example.org', 'other.example.org', 'no.example.org', '', 'a/b']) {
    const answer = await post(fields(host));
    expect(await answer.json()).toMatchObject({
      status: 422,
      type: 'errors/unprocessable_entity',
      detail: 'tracking_options.custom_domain: not a verified tracking domain of your application.',
    });
  }
  expect((await post(fields('no.example.org', {}))).status).toBe(422);
});

test('a body that cannot be tracked is a 422 before anything happens, and the key can be used again', async () => {
  const headers = { 'idempotency-key': randomUUID() };
  const fields = { body: '<svg>'.repeat(3_000), tracking_options: { links: true } };
  const answer = await post(fields, headers);
  expect(await answer.json()).toMatchObject({ status: 422, detail: expect.stringMatching(/^body: cannot be tracked/) });
  const found = await fetch(`${url}/v2/emails?idempotency_key=${headers['idempotency-key']}`, {
    headers: { 'x-api-key': token },
  });
  expect(found.status).toBe(404);
});

test('the redirect does not wait for a slow database, and at most so many hits wait for it', async () => {
  const { id, html } = await send({ body: '<a href="https://a.example/">1</a>', tracking_options: { links: true } });
  const [link = ''] = links(html);
  let release = (): void => undefined;
  const busy = new Promise<void>((resolve) => {
    release = resolve;
  });
  // The embedded database has one connection, which this transaction keeps.
  const blocked = db.transaction().execute(async (transaction) => {
    await transaction.selectFrom('sends').select('id').limit(1).execute();
    await busy;
  });
  for (let n = 0; n < MAX_PENDING + 20; n++) expect((await visit(link)).status).toBe(302);
  release();
  await blocked;
  await expectTracking(id, { label: null, opens: null, clicks: MAX_PENDING });
  await visit(link);
  await expectTracking(id, { label: null, opens: null, clicks: MAX_PENDING + 1 });
});

test('the redirect does not fail with the database', async () => {
  const { id, html } = await send({ body: '<a href="https://a.example/">1</a>', tracking_options: { links: true } });
  await db.schema.alterTable('tracking_hits').renameTo('tracking_hits_away').execute();
  expect((await visit(links(html)[0] ?? '')).status).toBe(302);
  await rooms.tracking.close();
  await db.schema.alterTable('tracking_hits_away').renameTo('tracking_hits').execute();
  expect(await hitsOf(id)).toEqual([]);
});

test('an email has so many hits at most, and an email that is gone has none', async () => {
  const { id, html } = await send({ body: '<a href="https://a.example/">1</a>', tracking_options: { links: true } });
  const hit = { application_id: application, send_id: id, kind: 'link', link_no: 1, class: 'person' } as const;
  const rows = Array.from({ length: 1_000 }, () => ({ ...hit, at: new Date() }));
  for (let n = 0; n < MAX_HITS_PER_SEND; n += 1_000) await db.insertInto('tracking_hits').values(rows).execute();
  expect((await visit(links(html)[0] ?? '')).status).toBe(302);
  await rooms.tracking.close();
  expect(await hitsOf(id)).toHaveLength(MAX_HITS_PER_SEND);
  await db.deleteFrom('sends').where('id', '=', id).execute();
  expect((await visit(links(html)[0] ?? '')).status).toBe(302);
  await rooms.tracking.close();
  expect(await hitsOf(id)).toEqual([]);
});

test('hits of one application are not counted for another', async () => {
  const { id, html } = await send({ body: '<a href="https://a.example/">1</a>', tracking_options: { links: true } });
  await visit(links(html)[0] ?? '');
  await expectTracking(id, { label: null, opens: null, clicks: 1 });
  const other = await service.application();
  expect(await rooms.tracking.countsOf(other.id, id)).toEqual({ opens: 0, clicks: 0 });
});
