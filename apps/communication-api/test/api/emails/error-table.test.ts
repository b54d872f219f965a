import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { afterAll, expect, test } from 'vitest';
import { OTHER_ERROR_TYPES, SEND_ERROR_TYPES } from '../../../src/domain/error-types.ts';
import { mailClient } from '../../support/mail-client.ts';
import { startService } from '../../support/service.ts';

const service = await startService();
const application = await service.application();

let dispatched = 0;
const count = (message: unknown): void => {
  if ((message as { step: string }).step === 'dispatched') dispatched++;
};
subscribe('communication-api:send', count);
afterAll(() => void unsubscribe('communication-api:send', count));

const PAIRS = Object.entries(SEND_ERROR_TYPES).flatMap(([status, types]) =>
  types.map((type) => [Number(status), type] as const),
);
const TITLES: Readonly<Record<number, string>> = {
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not found',
  409: 'Conflict',
  422: 'Unprocessable entity',
  500: 'Unexpected error',
  503: 'Service unavailable',
  504: 'Request timeout',
};
/** The provider has judged the email itself. */
const VERDICTS = new Set([403, 409, 422]);

/** Some errors disconnect an account. The next request shall reach the provider all the same. */
const heal = () =>
  service.db
    .updateTable('accounts')
    .set({ status: 'running', status_reason: null, auth_failed_at: null })
    .where('application_id', '=', application.id)
    .execute()
    .then(() => service.rooms.accounts.forgetRecent());

/** The first type of each status. Both ways to send share how an error becomes an answer. */
const SOME_PAIRS = PAIRS.filter(([status], index) => NIGHTLY || PAIRS.findIndex(([each]) => each === status) === index);

test.each([
  [true, PAIRS],
  [false, SOME_PAIRS],
] as const)(
  'every error type of the table can be reached, and only verdicts are stored under the key (drafts: %s)',
  async (drafts, pairs) => {
    expect(PAIRS.length).toBeGreaterThan(70);
    let client = await mailClient(service, application, { drafts });
    for (const [index, [status, type]] of pairs.entries()) {
      if (index % 4 === 3) client = await mailClient(service, application, { drafts });
      const to = [{ identifier: `error.${status}.${type.split('/')[1]}@mock.test` }];
      const key = `${drafts} ${type} ${status}`;
      const before = dispatched;
      await heal();
      const first = await client.json({ to }, key);
      expect({ key, status: first.status, ...first.json }).toMatchObject({
        status,
        type,
        title: TITLES[status],
        detail: expect.stringContaining(type),
        req_id: first.headers.get('x-request-id'),
      });
      expect(first.headers.get('content-type')).toMatch(/^application\/(problem\+)?json/);
      expect(dispatched).toBe(before + 1);
      await heal();
      const again = await client.json({ to }, key);
      const { req_id: _, ...problem } = first.json;
      expect({ key, ...again.json }).toMatchObject(problem);
      expect({ key, dispatched }).toEqual({ key, dispatched: before + (VERDICTS.has(status) ? 1 : 2) });
      // A replay is not charged, and neither is a provider that could not be reached.
      const isCharged = !VERDICTS.has(status) && type !== 'errors/network_down';
      expect({ key, isCharged: again.headers.has('x-ratelimit-limit') }).toEqual({ key, isCharged });
      const { json: email } = await client.get(`/v2/emails?idempotency_key=${encodeURIComponent(key)}`);
      // An email that was certainly not sent, and that a retry may send, has no row.
      expect({ key, ...email }).toMatchObject(VERDICTS.has(status) ? { state: 'failed' } : { status: 404 });
    }
    const rows = await service.db.selectFrom('mock_drafts').select('id').execute();
    expect(rows).toEqual([]);
    expect(await client.delivered()).toBe(0);
  },
);

test('the connection that failed is shown beside the errors of a mail server', async () => {
  const { json } = await mailClient(service, application);
  for (const type of [
    'invalid_imap_configuration',
    'invalid_smtp_configuration',
    'invalid_credentials_but_valid_account_imap',
  ]) {
    const { json: problem } = await json({ to: [{ identifier: `error.401.${type}@mock.test` }] });
    expect(problem).toMatchObject({ connectionParams: { imap_host: expect.any(String), smtp_port: 465 } });
    expect(JSON.stringify(problem)).not.toMatch(/pass/i);
  }
});

test('both types of 429 can be reached: the provider’s limit, and the service’s', async () => {
  expect(OTHER_ERROR_TYPES[429]).toEqual(['api/too_many_requests', 'provider/too_many_requests']);
  const { json } = await mailClient(service, application);
  const to = [{ identifier: 'limit@mock.test' }];
  const types = new Set<string | undefined>();
  for (let i = 0; i < 11; i++) {
    const answer = await json({ to }, 'limit');
    expect(answer.status).toBe(429);
    types.add(answer.json.type);
    expect(answer.headers.has('retry-after')).toBe(answer.json.type === 'api/too_many_requests');
  }
  expect([...types].sort()).toEqual(OTHER_ERROR_TYPES[429]);
});

test('an address that names no error of the table is an address like any other', async () => {
  const { json, delivered } = await mailClient(service, application);
  for (const name of [
    'error.422.nothing',
    'error.418.teapot',
    'error.429.too_many_requests.x',
    'error',
    'delay.x',
    'dropped',
  ])
    expect({ name, ...(await json({ to: [{ identifier: `${name}@mock.test` }] })) }).toMatchObject({ status: 201 });
  expect(await delivered()).toBe(6);
});
