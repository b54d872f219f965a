import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { isHeadgateError } from 'headgate';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Account, Accounts } from '../../src/accounts/accounts.ts';
import { AccountHealth } from '../../src/accounts/health.ts';
import { Applications } from '../../src/applications/applications.ts';
import type { Database } from '../../src/db/database.ts';
import { ServiceError } from '../../src/domain/service-error.ts';
import { MailAccounts } from '../../src/journal/mail-accounts.ts';
import { Sender, type SendRequest } from '../../src/journal/sender.ts';
import { Sends } from '../../src/journal/sends.ts';
import { compose } from '../../src/mail/compose.ts';
import { MockMailProvider } from '../../src/providers/mock/mail.ts';
import { MockMailbox } from '../../src/providers/mock/mailbox.ts';
import { Egress } from '../../src/security/egress.ts';
import { Envelope } from '../../src/security/envelope.ts';
import { Events } from '../../src/webhooks/events.ts';
import { claimStoreOn, sendUnderClaim, shortClaims } from '../support/claims.ts';
import { DATABASES, type OpenDatabase } from '../support/databases.ts';

/** The statements are the same on both databases, and only PostgreSQL runs them at the same time. */
const RUNS = { PGlite: NIGHTLY ? 100 : 10, PostgreSQL: NIGHTLY ? 100 : 25 };
const CLIENTS = 3;
const ATTEMPTS = 4;

/** How long the claim of a dead process lasts. A process that stalls, stalls longer. */
const LEASE_MS = 20;
const STALL_MS = 30;

const ASYNCHRONOUS = new Set([
  ...['begin', 'extend', 'dispatch', 'complete', 'abandon', 'unknown', 'byClaim'],
  ...['draft', 'discard', 'sendDraft', 'send', 'find'],
]);

class Death extends Error {}

/** One attempt in a process of its own, which dies or stalls before or after any of its calls. */
class Process {
  isDead = false;

  constructor(private readonly fault: () => 'none' | 'die' | 'stall') {}

  /** The same object, as this process sees it. */
  within<Thing extends object>(thing: Thing): Thing {
    return new Proxy(thing, {
      get: (target, name) => {
        const member = Reflect.get(target, name) as unknown;
        if (typeof member !== 'function') return member;
        // Only these calls leave the process.
        if (!ASYNCHRONOUS.has(String(name))) return member.bind(target) as unknown;
        return (...values: unknown[]) => this.#call(() => member.apply(target, values) as Promise<unknown>);
      },
    });
  }

  async #call(call: () => Promise<unknown>): Promise<unknown> {
    await this.#moment();
    const result = await call();
    await this.#moment();
    return result;
  }

  async #moment(): Promise<void> {
    const fault = this.isDead ? 'die' : this.fault();
    if (fault === 'die') {
      this.isDead = true;
      throw new Death();
    }
    if (fault === 'stall') {
      // Others take it for dead; it wakes up again.
      await pause(STALL_MS);
    }
  }
}

interface World {
  readonly db: Database;
  readonly account: Account;
  readonly mailAccounts: MailAccounts;
  readonly sends: Sends;
  readonly mail: MockMailProvider;
}

async function createWorld(db: Database, drafts: boolean): Promise<World> {
  const envelope = new Envelope([{ id: 'k1', key: randomBytes(32) }]);
  const events = new Events(Date.now);
  const accounts = new Accounts(db, envelope, Date.now, events);
  const { id } = await new Applications(db, Date.now).create('Test', 'development');
  const account = await accounts.insert(id, {
    provider: 'mock',
    providerUserId: 'me@mock.test',
    name: 'me@mock.test',
    scopeId: null,
    secret: { credentials: { drafts } },
  });
  if (account === undefined) throw new Error('The account was not stored.');
  const mail = new MockMailProvider(new MockMailbox(db, Date.now));
  const health = new AccountHealth(db, events, Date.now, { warn: () => undefined });
  const mailAccounts = new MailAccounts(accounts, new Egress({ policy: 'off' }), health);
  return { db, account, mailAccounts, sends: new Sends(db, envelope, Date.now, events), mail };
}

/** The answer of the provider is lost if the key says so. */
function requestOf({ account, mailAccounts }: World, mail: MockMailProvider, key: string): SendRequest {
  const messageId = `<${key}@mock.test>`;
  const to = [{ address: key.startsWith('drop') ? 'drop@mock.test' : 'ann@example.com' }];
  return {
    send: {
      applicationId: account.application_id,
      accountId: account.id,
      idempotencyKey: key,
      fingerprint: 'f1',
      messageId,
      label: null,
      content: { to: ['ann@example.com'], subject: null, references: [] },
    },
    mailAccount: mailAccounts.of(account),
    mail,
    compose: () =>
      compose({
        ...{ messageId, date: new Date(0), from: { address: account.name }, to, cc: [], bcc: [] },
        ...{ subject: 'Hello', body: 'Hello', customHeaders: [], attachments: [] },
      }),
  };
}

/** Several clients retry one key at once, in processes that die and stall. */
async function sendWithFaults(world: World, key: string, faults: readonly number[]): Promise<void> {
  let next = 0;
  // About one moment in eight is a fault, until the list is used up.
  const fault = (): 'none' | 'die' | 'stall' => {
    const value = faults[next++] ?? 0;
    return value === 1 ? 'die' : value === 2 ? 'stall' : 'none';
  };
  const claims = claimStoreOn(world.db);
  const client = async (): Promise<void> => {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const process = new Process(fault);
      const idempotency = shortClaims(process.within(claims), LEASE_MS);
      const records = process.within(world.sends.records);
      const sends = new Proxy(process.within(world.sends), {
        get: (target, name) => (name === 'records' ? records : Reflect.get(target, name)),
      });
      const sender = new Sender(sends, 5_000);
      try {
        await sendUnderClaim({ idempotency, sender, sends }, requestOf(world, process.within(world.mail), key));
        return;
      } catch (error) {
        if (process.isDead) continue;
        if (!(error instanceof ServiceError) && !isHeadgateError(error)) throw error;
      } finally {
        // What a dead process does in the background fails.
        if (process.isDead) await idempotency.close({ timeoutMs: 0 });
        else closing.push(idempotency.close());
      }
    }
  };
  const closing: Promise<void>[] = [];
  await Promise.all(Array.from({ length: CLIENTS }, client));
  await Promise.all(closing);
}

/** The last retry, in a healthy process. */
async function lastRetry(world: World, key: string): Promise<'sent' | 'unknown'> {
  const { sends, mail, db } = world;
  const idempotency = shortClaims(claimStoreOn(db), LEASE_MS);
  const sender = new Sender(sends, 5_000);
  try {
    for (let attempt = 0; attempt < 3; attempt++) {
      try {
        await sendUnderClaim({ idempotency, sender, sends }, requestOf(world, mail, key));
        return 'sent';
      } catch (error) {
        if (![409, 504].includes((error as ServiceError).status)) throw error;
      }
    }
    return 'unknown';
  } finally {
    await idempotency.close();
  }
}

const received = async ({ db }: World, key: string): Promise<number> =>
  (await db.selectFrom('mock_messages').select('id').where('message_id', '=', `<${key}@mock.test>`).execute()).length;

const faultLists = fc.array(fc.constantFrom(0, 0, 0, 0, 0, 0, 1, 2), { minLength: 10, maxLength: 120 });

describe.each(DATABASES)('on %s', (kind, open) => {
  let opened: OpenDatabase;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened.close());

  test('an email that is sent as a draft is received exactly once, whoever dies or stalls', async () => {
    const world = await createWorld(opened.db, true);
    await fc.assert(
      fc.asyncProperty(faultLists, fc.constantFrom('drop', 'keep'), async (faults, keyKind) => {
        const key = `${keyKind}-${randomUUID()}`;
        await sendWithFaults(world, key, faults);
        expect(await lastRetry(world, key)).toBe('sent');
        expect(await received(world, key)).toBe(1);
      }),
      { numRuns: RUNS[kind] },
    );
  });

  test('an email that is sent directly is received at most once, and exactly once if the client is told so', async () => {
    const world = await createWorld(opened.db, false);
    await fc.assert(
      fc.asyncProperty(faultLists, fc.constantFrom('drop', 'keep'), async (faults, keyKind) => {
        const key = `${keyKind}-${randomUUID()}`;
        await sendWithFaults(world, key, faults);
        const told = await lastRetry(world, key);
        const count = await received(world, key);
        expect(count).toBeLessThanOrEqual(1);
        if (told === 'sent') expect(count).toBe(1);
      }),
      { numRuns: RUNS[kind] },
    );
  });
});
