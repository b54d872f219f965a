/** The unit and the Caddyfile for operators: two processes as they start them, behind the real Caddy. */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { newId } from '../../src/domain/ids.ts';
import { startBrowser } from '../support/browser-pages.ts';
import { clientOf } from '../support/client.ts';
import { newMember } from '../support/dashboard.ts';
import { API, startDeployment, WIZARD } from '../support/deployment.ts';
import { secret } from '../support/secret.ts';
import type { RunningProcess } from '../support/service-process.ts';

const deployment = await startDeployment();
const newPage = await startBrowser([`--host-resolver-rules=MAP ${API}:443 127.0.0.1:${deployment.httpsPort}`]);

const get = async (path: string, host = API): Promise<number> => (await deployment.ask('GET', path, { host })).status;

const email = (account_id: string) => ({ account_id, to: [{ identifier: 'ann@mock.test' }], body: 'Hello' });

describe('the hosts', () => {
  test('of the service have certificates, also custom domains that are verified, and no others', async () => {
    const { db, applicationId } = deployment;
    const domain = { application_id: applicationId, purpose: 'auth' as const, created_at: new Date() };
    for (const [host, status] of [
      ['mail.shop.test', 'verified'],
      ['new.shop.test', 'pending'],
    ] as const)
      await db
        .insertInto('domains')
        .values({ ...domain, id: newId('dom', Date.now()), host, status })
        .execute();
    const reached = (host: string) => get('/healthz', host).catch(() => 'no certificate');
    for (const host of [API, WIZARD, 'mail.shop.test']) expect(await reached(host), host).toBe(200);
    for (const host of ['new.shop.test', 'evil.test']) expect(await reached(host), host).toBe('no certificate');
  });

  test('do not serve what is for the proxy and for operators', async () => {
    for (const path of ['/internal/tls-ask?domain=mail.shop.test', '/internal/', '/metrics', '/readyz'])
      expect(await get(path), path).toBe(404);
    const inner = `http://127.0.0.1:${deployment.innerPort}`;
    expect((await fetch(`${inner}/internal/tls-ask?domain=${API}`)).status).toBe(200);
  });
});

test('links are on the host of the wizard, which serves its pages', async () => {
  const expires_on = new Date(Date.now() + 60_000).toISOString();
  const link = { providers: 'mock', redirect_uri: 'https://app.example/cb', expires_on };
  const { body } = await deployment.ask('POST', '/v2/auth/link', { body: link });
  const { host, pathname } = new URL(body.link ?? '');
  expect(host).toBe(WIZARD);
  const page = await deployment.ask('GET', pathname, { host });
  expect([200, 302, 303]).toContain(page.status);
});

test('an Admin adjusts a limit in a browser: both processes count one allowance, and obey within a second', async () => {
  const { db, applicationId } = deployment;
  const account = await deployment.newAccount();
  const send = async (instance: number): Promise<number> =>
    (await clientOf(deployment.urlOf(instance), deployment.token)('POST', '/api/v1/emails', email(account))).status;
  // No other limit is in the way.
  for (const route of [null, 'POST /api/v1/emails'])
    await deployment.ask('PUT', '/v2/limits', { body: { account_id: account, route, windows: ['1000/1d'] } });
  const page = await newPage({ ignoreHTTPSErrors: true });
  const password = secret();
  const admin = await newMember(db, 'admin', password);
  await page.goto(`https://${API}/dashboard/applications/${applicationId}/accounts/${account}`);
  await page.fill('[name=email]', admin.email);
  await page.fill('[name=password]', password);
  await page.click('button >> text="Sign in"');

  // Each process has sent half of the new limit.
  for (const instance of [1, 2, 1, 2]) expect(await send(instance)).toBe(201);
  await page.click('summary >> text=Adjust >> nth=0');
  await page.fill('[name=windows] >> nth=0', '4/1d');
  await page.click('button:visible >> text="Preview"');
  await page.waitForSelector('text=rejected now');
  expect(await obeyedMs(page, 'Change the limit', send, 429)).toBeLessThan(OBEYED_MS);
  expect(await page.textContent('.done')).toContain('The limit is changed.');

  await page.click('summary >> text=Adjust >> nth=0');
  await page.click('button:visible >> text="Preview the reset"');
  expect(await obeyedMs(page, 'Reset the limit', send, 201)).toBeLessThan(OBEYED_MS);
  expect(await page.textContent('main')).toContain('Recommended for the provider');
});

/** How soon every process obeys a person. */
const OBEYED_MS = 1_000;

/** Clicks, and asks one process after the other until both answer so. @returns the milliseconds since the click */
async function obeyedMs(
  page: Page,
  button: string,
  send: (instance: number) => Promise<number>,
  status: number,
): Promise<number> {
  const start = performance.now();
  const elapsed = () => performance.now() - start;
  const click = page.click(`button >> text="${button}"`);
  for (const instance of [1, 2]) while ((await send(instance)) !== status && elapsed() < 10 * OBEYED_MS) await pause(5);
  const ms = elapsed();
  await click;
  await page.waitForSelector('.done');
  return ms;
}

test('the processes are restarted one after the other under load: no request fails, and each email is sent once', async () => {
  let isOver = false;
  const sent: string[] = [];
  const failures: string[] = [];
  const client = async (): Promise<void> => {
    while (!isOver) {
      // An account of its own for a few emails, so that no limit is in the way.
      const account = await deployment.newAccount();
      for (let i = 0; i < 5; i++) {
        const headers = { 'idempotency-key': randomUUID() };
        const answer = await deployment
          .ask('POST', '/api/v1/emails', { body: email(account), headers })
          .catch((error: Error) => ({ status: 0, body: { tracking_id: '' }, text: error.message }));
        if (answer.status === 201) sent.push(answer.body.tracking_id ?? '');
        else failures.push(`${answer.status} ${answer.text}`);
      }
    }
  };
  const before = await received();
  const clients = Array.from({ length: 4 }, client);
  try {
    for (const instance of [1, 2]) {
      const old = deployment.processes.get(instance) as RunningProcess;
      const atStart = sent.length;
      old.child.kill('SIGTERM');
      expect(await old.exit).toBe(0);
      expect(sent.length).toBeGreaterThan(atStart);
      await deployment.start(instance);
      // The proxy takes it back before the other one ends.
      await expect.poll(() => hasSent(instance), { timeout: 30_000 }).toBe(true);
    }
  } finally {
    isOver = true;
    await Promise.all(clients);
  }
  expect(failures).toEqual([]);
  expect(new Set(sent).size).toBe(sent.length);
  expect((await received()) - before).toBe(sent.length);
});

/** Whether a process has answered requests since its start: only the proxy sends them. */
const hasSent = async (instance: number): Promise<boolean> => {
  const metrics = await (await fetch(`${deployment.urlOf(instance, 'admin')}/metrics`)).text();
  return /^communication_api_requests_total\{route="POST \/api\/v1\/emails",status="201"\} [1-9]/m.test(metrics);
};

const received = async (): Promise<number> => {
  const { count } = await deployment.db
    .selectFrom('mock_messages')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
};

test('a client cannot escape the limit of wrong keys by a false address', async () => {
  const statuses: number[] = [];
  for (let i = 0; i < 50 && !statuses.includes(429); i++) {
    const headers = { 'x-api-key': `wrong${i}`, 'x-forwarded-for': `192.0.2.${i}` };
    statuses.push((await deployment.ask('GET', '/v2/accounts', { headers })).status);
  }
  expect(statuses).toContain(429);
});

test('if no process can be reached, the proxy answers with an error object', async () => {
  for (const { child, exit } of deployment.processes.values()) {
    child.kill('SIGKILL');
    await exit;
  }
  const { status, text } = await deployment.ask('POST', '/api/v1/emails', { body: email('acc_1') });
  expect({ status, body: JSON.parse(text) }).toMatchObject({
    status: 503,
    body: { type: 'errors/service_unavailable', status: 503, title: 'Service Unavailable', req_id: expect.any(String) },
  });
});
