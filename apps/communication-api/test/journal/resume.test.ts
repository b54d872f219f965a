import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Accounts } from '../../src/accounts/accounts.ts';
import { Applications } from '../../src/applications/applications.ts';
import { Sender, type SendRequest } from '../../src/journal/sender.ts';
import { Sends } from '../../src/journal/sends.ts';
import type { ComposedMail } from '../../src/mail/mail.ts';
import { type MailAccount, type MailProvider, ProviderError, type SentIds } from '../../src/providers/provider.ts';
import { Envelope } from '../../src/security/envelope.ts';
import { Events } from '../../src/webhooks/events.ts';
import { claimsOn, type Sent, sendUnderClaim } from '../support/claims.ts';
import { type OpenDatabase, openTestDatabase } from '../support/databases.ts';

const IDS: SentIds = { providerId: 'p1', immutableId: null, thread: null, rejected: [] };
const away = (): ProviderError =>
  new ProviderError('no', 503, 'errors/network_down', 'The provider cannot be reached.');

/** A mailbox whose calls can fail before they have an effect, and lose their answer after it. */
class FaultyMail implements MailProvider {
  readonly drafts = new Set<string>();
  sent = 0;
  fault: 'none' | 'lost answer' | 'away' | 'away at find' = 'none';

  isFenced = (): boolean => true;
  draft = async (): Promise<string> => {
    const id = randomUUID();
    this.drafts.add(id);
    return id;
  };
  discard = async (draft: string): Promise<boolean> => this.drafts.delete(draft);
  sendDraft = async (draft: string): Promise<SentIds | undefined> => {
    if (this.fault === 'away') throw away();
    if (!this.drafts.delete(draft)) return undefined;
    this.sent++;
    if (this.fault === 'lost answer') throw new ProviderError('unknown', 504, 'errors/request_timeout', 'Lost.');
    return IDS;
  };
  send = async (): Promise<SentIds> => IDS;
  find = async (): Promise<SentIds | undefined> => {
    if (this.fault === 'away at find') throw away();
    return this.sent > 0 ? IDS : undefined;
  };
  parent = async () => undefined;
}

let opened: OpenDatabase;
let request: (mail: MailProvider) => SendRequest;
let send: (request: SendRequest) => Promise<Sent>;
beforeAll(async () => {
  opened = await openTestDatabase('PGlite');
  const { db } = opened;
  const envelope = new Envelope([{ id: 'k1', key: randomBytes(32) }]);
  const events = new Events(Date.now);
  const { id: applicationId } = await new Applications(db, Date.now).create('Test', 'development');
  const account = await new Accounts(db, envelope, Date.now, events).insert(applicationId, {
    ...{ provider: 'google', providerUserId: 'me', name: 'me@example.com', scopeId: null, secret: { credentials: {} } },
  });
  const sends = new Sends(db, envelope, Date.now, events);
  const world = { idempotency: claimsOn(db), sender: new Sender(sends, 5_000), sends };
  send = (request) => sendUnderClaim(world, request);
  request = (mail) => ({
    send: {
      ...{ applicationId, accountId: account?.id ?? '', idempotencyKey: randomUUID(), fingerprint: 'f' },
      ...{ messageId: '<a@example.com>', label: null, content: { to: [], subject: null, references: [] } },
    },
    mail,
    mailAccount: { id: account?.id } as MailAccount,
    compose: () => ({ messageId: '<a@example.com>' }) as ComposedMail,
  });
});
afterAll(() => opened.close());

test.each(['away', 'away at find'] as const)(
  'a draft that may have been sent is not sent anew because the provider is %s at the retry',
  async (fault) => {
    const mail = new FaultyMail();
    const asked = request(mail);
    mail.fault = 'lost answer';
    await expect(send(asked)).rejects.toMatchObject({ status: 504 });
    mail.fault = fault;
    // This error proves that this attempt has sent nothing. It says nothing about the first attempt.
    await expect(send(asked)).rejects.toMatchObject({ status: 503 });
    mail.fault = 'none';
    expect(await send(asked)).toMatchObject({ providerId: 'p1' });
    expect(mail.sent).toBe(1);
  },
);

test('a draft that could not be sent is deleted, and the retry sends another one', async () => {
  const mail = new FaultyMail();
  const asked = request(mail);
  mail.fault = 'away';
  await expect(send(asked)).rejects.toMatchObject({ status: 503 });
  expect(mail.drafts.size).toBe(0);
  mail.fault = 'none';
  await send(asked);
  expect(mail.sent).toBe(1);
});
