import { randomBytes, randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Account, Accounts } from '../../src/accounts/accounts.ts';
import { AccountHealth } from '../../src/accounts/health.ts';
import { Applications } from '../../src/applications/applications.ts';
import { newId } from '../../src/domain/ids.ts';
import { claimKeyOf } from '../../src/journal/claims.ts';
import { MailAccounts } from '../../src/journal/mail-accounts.ts';
import type { Send } from '../../src/journal/send-records.ts';
import { GRACE_MS, Sender, type SendRequest } from '../../src/journal/sender.ts';
import { Sends } from '../../src/journal/sends.ts';
import { Sweeper } from '../../src/journal/sweeper.ts';
import { compose } from '../../src/mail/compose.ts';
import { MockMailProvider } from '../../src/providers/mock/mail.ts';
import { MockMailbox } from '../../src/providers/mock/mailbox.ts';
import { createMock } from '../../src/providers/mock/mock.ts';
import { Registry } from '../../src/providers/registry.ts';
import { Egress } from '../../src/security/egress.ts';
import { Envelope } from '../../src/security/envelope.ts';
import { Events } from '../../src/webhooks/events.ts';
import { claimsOn, sendUnderClaim } from '../support/claims.ts';
import { DATABASES, type OpenDatabase } from '../support/databases.ts';

const TIMEOUT_MS = 60_000;
/** Longer than any attempt. */
const OVER_MS = TIMEOUT_MS + GRACE_MS + 1;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const CANCELED = expect.objectContaining({ status: 409, type: 'errors/operation_canceled' });

/** How far a process came before it died. */
type Step = 'dispatched' | 'sent';

describe.each(DATABASES)('the sweeper on %s', (_, open) => {
  let opened: OpenDatabase;
  let world: Awaited<ReturnType<typeof createWorld>>;
  beforeAll(async () => {
    opened = await open();
    world = await createWorld(opened);
  });
  afterAll(async () => {
    await world.close();
    await opened.close();
  });

  describe('after the death of the process that had the email', () => {
    test('a draft with a key waits for the retry, which sends it once', async () => {
      const { row, request } = await world.died('dispatched', { drafts: true, key: 'k' });
      world.advance(OVER_MS);
      await world.sweeper.sweep();
      expect(await world.read(row)).toMatchObject({ state: 'dispatched', draft_ref: row.draft_ref });
      expect(await world.mails(row)).toEqual({ drafts: 1, received: 0 });
      const { attempt } = await world.read(row);
      await world.sweeper.sweep();
      expect(await world.read(row)).toMatchObject({ attempt });
      for (let retry = 0; retry < 2; retry++) expect(await world.send(request)).toMatchObject({ id: row.id });
      expect(await world.mails(row)).toEqual({ drafts: 0, received: 1 });
    });

    test('a draft with a key that was sent is found', async () => {
      const { row } = await world.died('sent', { drafts: true, key: 'k' });
      world.advance(OVER_MS);
      await world.sweeper.sweep();
      expect(await world.read(row)).toMatchObject({
        state: 'sent',
        owner: null,
        provider_id: expect.stringMatching(/^mock-/),
      });
    });

    test('a draft without a key is deleted, and the email has failed', async () => {
      const { row } = await world.died('dispatched', { drafts: true });
      world.advance(OVER_MS);
      await world.sweeper.sweep();
      expect(await world.read(row)).toMatchObject({ state: 'failed', error: CANCELED });
      expect(await world.mails(row)).toEqual({ drafts: 0, received: 0 });
    });

    test('a draft without a key whose outcome was unknown is deleted, too, and the email has failed', async () => {
      const { row } = await world.died('dispatched', { drafts: true });
      expect(await world.sends.unknown(row)).toBe(true);
      world.advance(OVER_MS);
      await world.sweeper.sweep();
      expect(await world.read(row)).toMatchObject({ state: 'failed', error: CANCELED });
      expect(await world.mails(row)).toEqual({ drafts: 0, received: 0 });
    });

    test('a draft without a key that is gone, and an email that is not found: the outcome is unknown', async () => {
      const { row } = await world.died('dispatched', { drafts: true });
      // Its provider does not show what it has sent yet, or the user has deleted the draft.
      await opened.db.deleteFrom('mock_drafts').where('message_id', '=', row.message_id).execute();
      world.advance(OVER_MS);
      await world.sweeper.sweep();
      expect(await world.read(row)).toMatchObject({ state: 'unknown', error: null });
    });

    test('a draft without a key that was sent is found', async () => {
      const { row } = await world.died('sent', { drafts: true });
      world.advance(OVER_MS);
      await world.sweeper.sweep();
      expect(await world.read(row)).toMatchObject({ state: 'sent', error: null });
      expect(await world.mails(row)).toEqual({ drafts: 0, received: 1 });
    });

    test.each([{ key: 'k' }, {}])('an email that was handed over directly is found (%o)', async (given) => {
      const { row } = await world.died('sent', { drafts: false, ...given });
      world.advance(OVER_MS);
      await world.sweeper.sweep();
      expect(await world.read(row)).toMatchObject({ state: 'sent' });
    });

    test('an email that cannot be found is unknown, and is sent if it is found within an hour', async () => {
      const [late, never] = [
        await world.died('dispatched', { drafts: false, key: 'k' }),
        await world.died('dispatched', { drafts: false }),
      ];
      world.advance(OVER_MS);
      await world.sweeper.sweep();
      for (const { row } of [late, never])
        expect(await world.read(row)).toMatchObject({ state: 'unknown', settled_at: null });
      await expect(world.send(late.request)).rejects.toMatchObject({ status: 409 });
      world.advance(HOUR_MS / 2);
      await world.deliver(late);
      await world.sweeper.sweep();
      expect(await world.read(late.row)).toMatchObject({ state: 'sent', settled_at: new Date(world.now()) });
      expect(await world.send(late.request)).toMatchObject({ wasSentBefore: true });
      world.advance(HOUR_MS / 2);
      await world.deliver(never);
      await world.sweeper.sweep();
      expect(await world.read(never.row)).toMatchObject({ state: 'unknown', settled_at: null });
    });

    test('an email that never came to its provider has no row, and a retry sends it', async () => {
      const { id, request } = await world.diedBefore({ drafts: true, key: 'k' });
      world.advance(OVER_MS);
      await world.sweeper.sweep();
      expect(await world.sends.records.byId(request.send.applicationId, id)).toBe(undefined);
      expect(await world.send(request)).toMatchObject({ wasSentBefore: false });
    });

    test('of an account that was removed, the outcome is unknown, and nothing is sent', async () => {
      const all = [
        await world.died('dispatched', { drafts: true, key: 'k' }),
        await world.died('dispatched', { drafts: true }),
        await world.died('sent', { drafts: false }),
      ];
      for (const { row } of all) await world.accounts.remove(row.application_id, row.account_id);
      world.advance(OVER_MS);
      await world.sweeper.sweep();
      await world.sweeper.sweep();
      for (const { row } of all) expect(await world.read(row)).toMatchObject({ state: 'unknown' });
      expect(await world.mails(all[0]?.row as Send)).toEqual({ drafts: 1, received: 0 });
    });
  });

  test.each<[Step, boolean]>([
    ['dispatched', true],
    ['dispatched', false],
    ['sent', false],
  ])('an email that a live process works on is not touched within its time (%s, drafts: %s)', async (step, drafts) => {
    const all = [await world.died(step, { drafts }), await world.died(step, { drafts, key: 'k' })];
    world.advance(OVER_MS - 1);
    await world.sweeper.sweep();
    for (const { row } of all) expect(await world.read(row)).toEqual(row);
    world.advance(2 * OVER_MS);
    await world.sweeper.sweep();
  });

  test('a key is forgotten after 24 hours, and then belongs to a new request', async () => {
    const { row, request } = await world.died('sent', { drafts: true, key: 'k' });
    const { row: draft } = await world.died('dispatched', { drafts: true, key: 'k' });
    world.advance(OVER_MS);
    await world.sweeper.sweep();
    world.advance(DAY_MS - OVER_MS);
    await world.sweeper.sweep();
    expect(await world.read(row)).toMatchObject({ state: 'sent', idempotency_key: request.send.idempotencyKey });
    world.advance(OVER_MS + 1);
    await world.sweeper.sweep();
    expect(await world.read(row)).toMatchObject({ state: 'sent', idempotency_key: null });
    expect(await world.read(draft)).toMatchObject({ state: 'failed', error: CANCELED });
    const { id, wasSentBefore } = await world.send(request);
    expect([id === row.id, wasSentBefore]).toEqual([false, false]);
    expect(await world.mails(row)).toEqual({ drafts: 0, received: 2 });
  });

  test('a key that no sweeper has forgotten belongs to a new request after 24 hours, too', async () => {
    const { row, request } = await world.died('sent', { drafts: true, key: 'k' });
    world.advance(OVER_MS);
    await world.sweeper.sweep();
    expect(await world.send(request)).toMatchObject({ id: row.id, wasSentBefore: true });
    world.advance(DAY_MS + 1);
    const { id, wasSentBefore } = await world.send(request);
    expect([id === row.id, wasSentBefore]).toEqual([false, false]);
    expect(await world.read(row)).toMatchObject({ state: 'sent', idempotency_key: null });
  });

  test('two sweepers at the same time look up each email once', async () => {
    const all = await Promise.all(Array.from({ length: 6 }, () => world.died('sent', { drafts: false })));
    world.advance(OVER_MS);
    world.asked.length = 0;
    await Promise.all([world.sweeper.sweep(), world.other.sweep()]);
    expect([...world.asked].sort()).toEqual(all.map(({ row }) => row.message_id).sort());
    for (const { row } of all) expect(await world.read(row)).toMatchObject({ state: 'sent' });
  });

  test('a provider that cannot be reached keeps no other email waiting, and is not asked for ever', async () => {
    const failing = [];
    for (let i = 0; i < 100; i++) failing.push(await world.died('dispatched', { drafts: false }));
    const draft = await world.died('dispatched', { drafts: true, key: 'k' });
    const first = failing[0]?.row as Send;
    for (const { row } of [...failing, draft]) world.away.add(row.message_id);
    world.advance(1);
    const { row } = await world.died('sent', { drafts: false });
    world.advance(OVER_MS);
    await world.sweeper.sweep();
    await world.sweeper.sweep();
    expect(await world.read(row)).toMatchObject({ state: 'sent' });
    expect(await world.read(first)).toMatchObject({ state: 'dispatched' });
    world.advance(HOUR_MS);
    await world.sweeper.sweep();
    await world.sweeper.sweep();
    for (const { row } of failing) expect(await world.read(row)).toMatchObject({ state: 'unknown' });
    expect(await world.read(draft.row)).toMatchObject({ state: 'dispatched' });
    world.asked.length = 0;
    await world.sweeper.sweep();
    expect(world.asked).toEqual([]);
  });

  test('the end of the process does not wait for a provider', async () => {
    const { row } = await world.died('dispatched', { drafts: false });
    world.stuck.add(row.message_id);
    world.advance(OVER_MS);
    const sweeper = world.newSweeper();
    const sweeping = sweeper.sweep();
    await expect.poll(() => world.asked).toContain(row.message_id);
    await sweeper.close();
    await sweeping;
    expect(await world.read(row)).toMatchObject({ state: 'dispatched' });
    world.stuck.clear();
    await world.sweeper.sweep();
    expect(await world.read(row)).toMatchObject({ state: 'unknown' });
  });

  test('a provider that does not answer in time is asked again by the next sweep', async () => {
    const { row } = await world.died('sent', { drafts: false });
    world.stuck.add(row.message_id);
    world.advance(OVER_MS);
    await world.newSweeper(20).sweep();
    expect(await world.read(row)).toMatchObject({ state: 'dispatched' });
    world.stuck.clear();
    await world.sweeper.sweep();
    expect(await world.read(row)).toMatchObject({ state: 'sent' });
  });

  describe('of several settlements at the same time, the journal takes one, and tells of it once', () => {
    const eventsOf = async ({ id }: Send): Promise<readonly string[]> => {
      const rows = await opened.db.selectFrom('events').selectAll().execute();
      return rows.flatMap(({ type, data }) => (data.tracking_id === id ? [type] : [])).sort();
    };

    test('a failure, and an unknown outcome', async () => {
      for (let round = 0; round < 5; round++) {
        const { row, claim } = await world.died('dispatched', { drafts: false });
        const note = world.sends.notes.failed(row, { status: 422, type: 'errors/recipient_rejected', detail: '' });
        const failed = () => world.idempotency.completeWith(claim, { status: '422', value: undefined }, { note });
        const unknown = () => world.sends.unknown(row);
        const [one, first, two, second] = await Promise.all([failed(), unknown(), failed(), unknown()]);
        expect([one, two].sort()).toEqual(['already_completed', 'completed']);
        expect(await world.read(row)).toMatchObject({ state: 'failed' });
        const isNews = first || second;
        expect(await eventsOf(row)).toEqual(
          isNews ? ['email.failed', 'email.outcome_resolved', 'email.outcome_unknown'] : ['email.failed'],
        );
      }
    });

    test('an unknown outcome that two have found', async () => {
      for (let round = 0; round < 5; round++) {
        const { row, claim } = await world.died('dispatched', { drafts: false });
        const note = world.sends.notes.sent(row, IDS);
        const found = () => world.idempotency.completeWith(claim, { status: '201', value: undefined }, { note });
        await Promise.all([world.sends.unknown(row), found(), found()]);
        expect(await world.read(row)).toMatchObject({ state: 'sent' });
        const events = await eventsOf(row);
        // If it was found first, its outcome was never unknown.
        expect([['email.sent'], ['email.outcome_resolved', 'email.outcome_unknown', 'email.sent']]).toContainEqual(
          events,
        );
      }
    });
  });
});

const IDS = { providerId: null, immutableId: null, thread: null, rejected: [] };

async function createWorld({ db }: OpenDatabase) {
  let now = Date.parse('2027-01-01T00:00:00Z');
  const clock = (): number => now;
  const log = pino({ level: 'silent' });
  const envelope = new Envelope([{ id: 'k1', key: randomBytes(32) }]);
  const events = new Events(clock);
  const accounts = new Accounts(db, envelope, clock, events);
  const sends = new Sends(db, envelope, clock, events);
  const mailAccounts = new MailAccounts(
    accounts,
    new Egress({ policy: 'off' }),
    new AccountHealth(db, events, clock, log),
  );
  const mailbox = new MockMailbox(db, clock);
  const { id: applicationId } = await new Applications(db, clock).create('Test', 'development');

  /** The Message-IDs that a sweeper has looked for; those that fail; those that get no answer. */
  const [asked, away, stuck] = [[] as string[], new Set<string>(), new Set<string>()];
  class WatchedMail extends MockMailProvider {
    override async find(...values: Parameters<MockMailProvider['find']>) {
      const [{ messageId }] = values;
      asked.push(messageId);
      if (stuck.has(messageId)) return new Promise<never>(() => undefined);
      if (away.has(messageId)) throw new Error('The provider cannot be reached.');
      return super.find(...values);
    }
  }
  const mail = new WatchedMail(mailbox);
  const providers = new Registry([{ ...createMock(mailbox), mail }]);
  const [idempotency, others] = [claimsOn(db, clock), claimsOn(db, clock)];
  const sender = new Sender(sends, TIMEOUT_MS);
  const newSweeper = (timeoutMs = TIMEOUT_MS, claims = idempotency): Sweeper =>
    new Sweeper({ idempotency: claims, sends, sender, accounts, mailAccounts, providers, log, timeoutMs });

  const requestOf = (account: Account, key: string | undefined): SendRequest => {
    const messageId = `<${randomUUID()}@mock.test>`;
    return {
      send: {
        applicationId,
        accountId: account.id,
        idempotencyKey: key === undefined ? null : `${key}-${randomUUID()}`,
        fingerprint: 'f1',
        messageId,
        label: null,
        content: { to: ['ann@example.com'], subject: null, references: [] },
      },
      mailAccount: mailAccounts.of(account),
      mail,
      compose: () =>
        compose({
          ...{ messageId, date: new Date(now), from: { address: account.name }, cc: [], bcc: [] },
          ...{ to: [{ address: 'ann@example.com' }], subject: 'Hello', body: 'Hello' },
          ...{ customHeaders: [], attachments: [] },
        }),
    };
  };
  const read = async ({ application_id, id }: Send): Promise<Send> =>
    (await sends.records.byId(application_id, id)) as Send;
  const signal = new AbortController().signal;

  const claimed = async ({ send }: SendRequest) => {
    const id = newId('eml', now);
    const key = claimKeyOf(send.idempotencyKey, id);
    const opened = await idempotency.open({
      ...{ scope: applicationId, key, fingerprint: 'f1', dispatch: 'explicit', onOrphan: 'reject' },
    });
    if (opened.kind !== 'claimed') throw new Error(opened.kind);
    return { id, claim: opened.claim };
  };
  const accountOf = async (drafts: boolean): Promise<Account> => {
    const name = `${randomUUID()}@mock.test`;
    return (await accounts.insert(applicationId, {
      ...{ provider: 'mock', providerUserId: name, name, scopeId: null, secret: { credentials: { drafts } } },
    })) as Account;
  };

  /** An email whose process died before it dispatched it. */
  async function diedBefore({ drafts, key }: { readonly drafts: boolean; readonly key?: string }) {
    const request = requestOf(await accountOf(drafts), key);
    const { id, claim } = await claimed(request);
    // Its lease is over in a moment.
    await claim.leave();
    return { id, request };
  }

  /** An email whose process came to a step, and then died. */
  async function died(step: Step, { drafts, key }: { readonly drafts: boolean; readonly key?: string }) {
    const account = await accountOf(drafts);
    const request = requestOf(account, key);
    const { id, claim } = await claimed(request);
    const draft = drafts ? await mail.draft(await request.compose(id), request.mailAccount) : null;
    expect(await claim.dispatch(sends.notes.begun(request.send, id, draft))).toEqual({ kind: 'ok' });
    await claim.leave();
    const sent = { request, claim, row: (await sends.records.byId(applicationId, id)) as Send };
    if (step === 'sent') await deliver(sent);
    return sent;
  }

  /** The provider has the email now. */
  async function deliver({ request, row }: { readonly request: SendRequest; readonly row: Send }): Promise<void> {
    if (row.draft_ref === null) await mail.send(await request.compose(row.id), request.mailAccount, signal);
    else await mail.sendDraft(row.draft_ref, request.mailAccount, signal);
  }

  const count = async (table: 'mock_drafts' | 'mock_messages', messageId: string): Promise<number> =>
    (await db.selectFrom(table).select('id').where('message_id', '=', messageId).execute()).length;
  return {
    ...{ accounts, sends, idempotency, asked, away, stuck, newSweeper, died, diedBefore, deliver, read },
    send: (request: SendRequest) => sendUnderClaim({ idempotency: others, sender, sends }, request),
    close: () => Promise.all([idempotency.close(), others.close()]),
    sweeper: newSweeper(),
    other: newSweeper(TIMEOUT_MS, others),
    now: clock,
    advance: (ms: number): void => {
      now += ms;
    },
    mails: async ({ message_id: messageId }: Send) => ({
      drafts: await count('mock_drafts', messageId),
      received: await count('mock_messages', messageId),
    }),
  };
}
