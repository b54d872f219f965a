import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { Retention } from '../../src/journal/retention.ts';
import type { Send } from '../../src/journal/send-records.ts';
import { linkAccount } from '../support/accounts.ts';
import { DATABASES } from '../support/databases.ts';
import { dispatchedEmail } from '../support/emails.ts';
import { startService } from '../support/service.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const IDS = { providerId: 'p', immutableId: null, thread: null, rejected: [] };
const ERROR = { status: 422, type: 'errors/unprocessable_entity', detail: 'No.' };
const log = pino({ level: 'silent' });

describe.each(DATABASES)('on %s', async (kind) => {
  let now = Date.now();
  const { rooms, db, application } = await startService({}, { kind, clock: () => now });
  const { id: applicationId } = await application();
  const { id: accountId } = await linkAccount(rooms, applicationId);
  const { sends, links, wizardSessions } = rooms;
  const retention = new Retention(
    [
      { what: 'envelopes', erase: (limit) => sends.old.eraseContents(limit) },
      { what: 'sends', erase: (limit) => sends.old.deleteOld(limit) },
      { what: 'links', erase: (limit) => links.deleteOld(limit) },
    ],
    log,
    2,
  );
  const read = (id: string): Promise<Send | undefined> => sends.records.byId(applicationId, id);
  const content = { to: ['ann@example.com'], subject: 'Hello', references: [] };

  async function newSend(state: Send['state']): Promise<string> {
    const { id, claim, row } = await dispatchedEmail(rooms, { applicationId, accountId }, now);
    const result = { status: '201', value: undefined };
    if (state === 'sent') await claim.complete(result, { note: sends.notes.sent(row, IDS) });
    else if (state === 'failed') await claim.complete(result, { note: sends.notes.failed(row, ERROR) });
    else await claim.leave();
    if (state === 'unknown') await sends.unknown(row);
    return id;
  }

  test('of a settled email, the addresses and the subject are erased after 7 days, and the rest after 30', async () => {
    const settled = [];
    for (const state of ['sent', 'failed', 'unknown', 'sent', 'sent'] as const) settled.push(await newSend(state));
    const [first = ''] = settled;
    await db
      .insertInto('tracking_hits')
      .values({
        application_id: applicationId,
        send_id: first,
        kind: 'open',
        link_no: null,
        class: 'person',
        at: new Date(),
      })
      .execute();
    now += 7 * DAY_MS;
    await retention.run();
    for (const id of settled)
      expect(await read(id).then((row) => row && sends.records.contentOf(row))).toEqual(content);
    now += 1;
    await retention.run();
    for (const id of settled) expect(await read(id)).toMatchObject({ id, envelope: null });
    now += 23 * DAY_MS - 1;
    await retention.run();
    for (const id of settled) expect(await read(id)).toMatchObject({ id });
    expect(await db.selectFrom('tracking_hits').select('id').execute()).toHaveLength(1);
    now += 1;
    await retention.run();
    for (const id of settled) expect(await read(id)).toBe(undefined);
    expect(await db.selectFrom('tracking_hits').select('id').execute()).toEqual([]);
  });

  test('an email that is not settled is left to the sweeper, however old it is', async () => {
    const unsettled = [await newSend('dispatched')];
    const before = await Promise.all(unsettled.map(read));
    now += 100 * DAY_MS;
    await retention.run();
    expect(await Promise.all(unsettled.map(read))).toEqual(before);
    expect(before[0]).toMatchObject({ state: 'dispatched', envelope: expect.any(Uint8Array) });
  });

  test('the time of an email counts from its outcome, not from its request', async () => {
    const id = await newSend('unknown');
    now += 8 * DAY_MS;
    const found = {
      done: true,
      result: { status: '201', value: undefined },
      note: sends.notes.sent({ id, label: null }, IDS),
    } as const;
    expect(await rooms.idempotency.reconcileWith({ scope: applicationId, key: `\n${id}` }, () => found)).toBe(
      'completed',
    );
    now += 29 * DAY_MS;
    await retention.run();
    expect(await read(id)).toMatchObject({ id, envelope: null });
    now += DAY_MS + 1;
    await retention.run();
    expect(await read(id)).toBe(undefined);
  });

  test('a link is deleted with its sessions 7 days after it was used or cancelled, or has expired', async () => {
    const key = await db.selectFrom('api_keys').select('id').executeTakeFirstOrThrow();
    const create = async (lifeMs: number) => {
      const { token } = await links.create(applicationId, {
        ...{ keyId: key.id, scopeId: null, accountId: null, providers: ['mock'], config: {} },
        ...{ redirectUri: 'https://app.example', state: null, domain: null, expiresOn: new Date(now + lifeMs) },
      });
      const link = await links.resolve(token);
      if (link === undefined) throw new Error('The link was not stored.');
      const { session } = await wizardSessions.create(link, 'flow', {});
      return { token, link, session };
    };
    const left = async (...all: readonly { readonly token: string }[]) =>
      Promise.all(all.map(async ({ token }) => (await links.resolve(token)) !== undefined));
    const [used, cancelled, expired] = [await create(7 * DAY_MS), await create(7 * DAY_MS), await create(7 * DAY_MS)];
    const short = await create(HOUR_MS);
    const account = { provider: 'mock', providerUserId: 'u', name: 'u', secret: { credentials: { drafts: true } } };
    const linked = await links.complete(applicationId, { link: used.link, sessionId: used.session.id, account });
    expect(linked.kind).toBe('linked');
    expect(await links.cancel(applicationId, cancelled.link, cancelled.session.id)).toBe(true);
    now += 7 * DAY_MS;
    await retention.run();
    expect(await left(used, cancelled, expired, short)).toEqual([true, true, true, true]);
    now += 1;
    await retention.run();
    expect(await left(used, cancelled, expired, short)).toEqual([false, false, true, true]);
    now += HOUR_MS;
    await retention.run();
    expect(await left(expired, short)).toEqual([true, false]);
    const sessions = await db.selectFrom('wizard_sessions').select('id').execute();
    expect(sessions).toEqual([{ id: expired.session.id }]);
    now += 7 * DAY_MS;
    await retention.run();
    expect(await left(expired)).toEqual([false]);
    expect(await db.selectFrom('accounts').select('id').where('provider_user_id', '=', 'u').execute()).toHaveLength(1);
  });

  test('two processes at the same time erase everything, and neither fails', async () => {
    for (let i = 0; i < 9; i++) await newSend('sent');
    now += 31 * DAY_MS;
    const erased = await Promise.all([sends.old.deleteOld(9), sends.old.deleteOld(9)]);
    expect(erased[0] + erased[1]).toBe(9);
  });
});
