/** The database is away just when an outcome is to be written: the process that knows it writes it later. */
import { randomBytes, randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { PostgresClaimStore } from 'headgate/postgres';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { Accounts } from '../../src/accounts/accounts.ts';
import { Applications } from '../../src/applications/applications.ts';
import { createServiceIdempotency } from '../../src/journal/claims.ts';
import { Sender, type SendRequest } from '../../src/journal/sender.ts';
import { Sends } from '../../src/journal/sends.ts';
import type { ComposedMail } from '../../src/mail/mail.ts';
import type { MailAccount, MailProvider } from '../../src/providers/provider.ts';
import { Envelope } from '../../src/security/envelope.ts';
import { Events } from '../../src/webhooks/events.ts';
import { claimStoreOn, sendUnderClaim } from '../support/claims.ts';
import { type OpenDatabase, openTestDatabase } from '../support/databases.ts';

let opened: OpenDatabase;
let sends: Sends;
let applicationId: string;
let accountId: string;
beforeAll(async () => {
  opened = await openTestDatabase('PGlite');
  const { db } = opened;
  const envelope = new Envelope([{ id: 'k1', key: randomBytes(32) }]);
  const events = new Events(Date.now);
  applicationId = (await new Applications(db, Date.now).create('Test', 'development')).id;
  const account = await new Accounts(db, envelope, Date.now, events).insert(applicationId, {
    ...{ provider: 'imap', providerUserId: 'me', name: 'me@example.com', scopeId: null, secret: { credentials: {} } },
  });
  accountId = account?.id ?? '';
  sends = new Sends(db, envelope, Date.now, events);
});
afterAll(() => opened.close());

let isAway = true;
beforeEach(() => {
  isAway = true;
});
const away = (): Error => Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });

/**
 * The claims, of which some commands fail while the database is away: before the statement is executed, or only its
 * answer is lost.
 */
function claims(commands: Partial<Record<keyof PostgresClaimStore, 'not executed' | 'executed'>>): PostgresClaimStore {
  return new Proxy(claimStoreOn(opened.db), {
    get: (target, name) => {
      const method = Reflect.get(target, name);
      const how = commands[name as keyof PostgresClaimStore];
      if (how === undefined) return method?.bind?.(target) ?? method;
      return async (...values: unknown[]) => {
        if (!isAway) return method.apply(target, values);
        if (how === 'executed') await method.apply(target, values);
        throw away();
      };
    },
  });
}

function senderOn(store: PostgresClaimStore) {
  let sent = 0;
  const mail = {
    isFenced: () => false,
    send: async (email: ComposedMail) => {
      await email.open().toArray();
      sent++;
      return { providerId: 'p1', immutableId: null, thread: null, rejected: [] };
    },
    // A folder that does not show the email: only the process knows that it is out.
    find: async () => undefined,
  } as unknown as MailProvider;
  const request: SendRequest = {
    send: {
      ...{ applicationId, accountId, idempotencyKey: randomUUID(), fingerprint: 'f', messageId: '<a@example.com>' },
      ...{ label: null, content: { to: [], subject: null, references: [] } },
    },
    mail,
    mailAccount: { id: accountId } as MailAccount,
    compose: () => ({ messageId: '<a@example.com>', open: () => Readable.from(['Hello']) }) as unknown as ComposedMail,
  };
  const idempotency = createServiceIdempotency(store, () => undefined);
  const world = { idempotency, sender: new Sender(sends, 5_000), sends };
  return { idempotency, sent: () => sent, send: () => sendUnderClaim(world, request) };
}

test('an email that is out while the database is away: the retry gets 201, and it is sent once', async () => {
  const { idempotency, send, sent } = senderOn(claims({ complete: 'not executed' }));
  await expect(send()).rejects.toThrow('ECONNREFUSED');
  expect(idempotency.pending).toBe(1);
  isAway = false;
  // It waits for the outcome.
  expect(await send()).toMatchObject({ providerId: 'p1', wasSentBefore: true });
  await idempotency.idle();
  expect(sent()).toBe(1);
});

test('the answer to the mark is lost, and then the database: the retry sends the email', async () => {
  const { idempotency, send, sent } = senderOn(claims({ dispatch: 'executed', abandon: 'not executed' }));
  await expect(send()).rejects.toThrow();
  expect(sent()).toBe(0);
  expect(await opened.db.selectFrom('sends').select('state').where('state', '=', 'dispatched').execute()).toHaveLength(
    1,
  );
  isAway = false;
  await idempotency.idle();
  expect(await send()).toMatchObject({ wasSentBefore: false });
  expect(sent()).toBe(1);
  expect(await opened.db.selectFrom('sends').select('state').where('state', '=', 'dispatched').execute()).toEqual([]);
});
