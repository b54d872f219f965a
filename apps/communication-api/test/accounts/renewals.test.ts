import { randomBytes, randomUUID } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { AccountSecrets } from '../../src/accounts/account-secrets.ts';
import { type Account, Accounts } from '../../src/accounts/accounts.ts';
import { Renewals } from '../../src/accounts/renewals.ts';
import { Applications } from '../../src/applications/applications.ts';
import { openServer } from '../../src/db/database.ts';
import { Envelope } from '../../src/security/envelope.ts';
import { Events } from '../../src/webhooks/events.ts';
import { DATABASES, type OpenDatabase } from '../support/databases.ts';

/** Longer than a lease. */
const OVER_MS = 31_000;

interface Tokens {
  readonly access: string;
  readonly refresh: string;
}

/** A promise that the test resolves. */
const signal = () => {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
};

/** An authorization server that accepts each refresh token once, and revokes everything if one comes twice. */
class StrictServer {
  readonly #known = new Set<string>(['r0']);
  refreshes = 0;
  #gate: Promise<void> = Promise.resolve();

  /** Every refresh waits from now on, until the result is called. */
  hold(): () => void {
    const { promise, resolve } = signal();
    this.#gate = promise;
    return resolve;
  }

  readonly refresh = async (stored: unknown): Promise<Tokens> => {
    const { refresh } = stored as Tokens;
    this.refreshes++;
    if (!this.#known.delete(refresh)) throw new Error(`invalid_grant: ${refresh}`);
    await this.#gate;
    const next = { access: `a${this.refreshes}`, refresh: `r${this.refreshes}` };
    this.#known.add(next.refresh);
    return next;
  };
}

const START: Tokens = { access: 'a0', refresh: 'r0' };
describe.each(DATABASES)('the renewal of credentials on %s', (kind, open) => {
  let opened: OpenDatabase;
  let applicationId: string;
  let now = Date.parse('2027-01-01T00:00:00Z');
  const clock = (): number => now;
  const envelope = new Envelope([{ id: 'k1', key: randomBytes(32) }]);
  const secrets = new AccountSecrets(envelope);
  const newAccounts = () => new Accounts(opened.db, envelope, clock, new Events(clock));
  /** What each process has of its own. */
  const newProcess = (refreshMs?: number) => new Renewals(opened.db, secrets, clock, refreshMs);

  beforeAll(async () => {
    opened = await open();
    ({ id: applicationId } = await new Applications(opened.db, clock).create('Test', 'development'));
  });
  afterAll(() => opened.close());

  const link = async (): Promise<Account> => {
    const name = randomUUID();
    const account = await newAccounts().insert(applicationId, {
      ...{ provider: 'google', providerUserId: name, name, scopeId: null },
      secret: { credentials: START, autoProxy: { country: 'DE' } },
    });
    if (account === undefined) throw new Error('The account is linked already.');
    return account;
  };
  /** A renewal whose refresh has reached the server, and waits there for `release`. */
  const held = async () => {
    const account = await link();
    const server = new StrictServer();
    const release = server.hold();
    const renewed = newProcess().renew(applicationId, account.id, START, server.refresh);
    await expect.poll(() => server.refreshes).toBe(1);
    return { account, server, release, renewed };
  };
  const stored = async ({ id }: Account) => {
    const account = await newAccounts().find(applicationId, id);
    return account && { ...newAccounts().secretOf(account), owner: account.renewal_owner };
  };

  test('many callers in several processes cause one refresh, and all get its result', async () => {
    const account = await link();
    const server = new StrictServer();
    const processes = [newProcess(), newProcess(), newProcess()];
    const results = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        processes[i % 3]?.renew(applicationId, account.id, { ...START }, server.refresh),
      ),
    );
    expect(server.refreshes).toBe(1);
    expect(new Set(results.map((each) => JSON.stringify(each)))).toEqual(
      new Set([JSON.stringify({ access: 'a1', refresh: 'r1' })]),
    );
    // The rest of the secret is as it was, and the lease is given back.
    expect(await stored(account)).toEqual({
      credentials: { access: 'a1', refresh: 'r1' },
      autoProxy: { country: 'DE' },
      owner: null,
    });
  });

  test('a caller with older credentials gets the stored ones, without a refresh', async () => {
    const account = await link();
    const server = new StrictServer();
    const first = await newProcess().renew(applicationId, account.id, START, server.refresh);
    expect(await newProcess().renew(applicationId, account.id, START, server.refresh)).toEqual(first);
    expect(server.refreshes).toBe(1);
    expect(await newProcess().renew(applicationId, account.id, first, server.refresh)).toEqual({
      access: 'a2',
      refresh: 'r2',
    });
  });

  test('the database answers others while a refresh runs', async () => {
    const { account, release, renewed } = await held();
    // With an open transaction, the one connection of the embedded database would not answer, and this row be locked.
    const update = await newAccounts().update(applicationId, account.id, { metadata: { a: 1 } });
    expect(update).toMatchObject({ metadata: { a: 1 } });
    release();
    expect(await renewed).toEqual({ access: 'a1', refresh: 'r1' });
  });

  test('an error reaches every caller of the process, stores nothing, and the next caller tries again', async () => {
    const account = await link();
    const process = newProcess();
    let calls = 0;
    const refuse = async (): Promise<never> => {
      calls++;
      throw new Error('the provider is away');
    };
    const results = await Promise.allSettled(
      [1, 2, 3].map(() => process.renew(applicationId, account.id, START, refuse)),
    );
    expect(results.map(({ status }) => status)).toEqual(Array(3).fill('rejected'));
    expect(calls).toBe(1);
    expect(await stored(account)).toMatchObject({ credentials: START, owner: null });
    expect(await process.renew(applicationId, account.id, START, new StrictServer().refresh)).toEqual({
      access: 'a1',
      refresh: 'r1',
    });
  });

  test('a refresh that hangs ends for its callers in time; what it gets later is stored all the same', async () => {
    const account = await link();
    const server = new StrictServer();
    const release = server.hold();
    await expect(newProcess(20).renew(applicationId, account.id, START, server.refresh)).rejects.toMatchObject({
      status: 503,
      type: 'errors/service_unavailable',
    });
    // Another caller must not use the refresh token while its first use may still succeed.
    expect((await stored(account))?.owner).not.toBeNull();
    release();
    await expect.poll(async () => (await stored(account))?.credentials).toEqual({ access: 'a1', refresh: 'r1' });
    expect(await newProcess().renew(applicationId, account.id, START, server.refresh)).toEqual({
      access: 'a1',
      refresh: 'r1',
    });
    expect(server.refreshes).toBe(1);
  });

  test('a waiter takes over the lease of a dead process when it has expired', async () => {
    const account = await link();
    const never = new Promise<never>(() => undefined);
    const asked = signal();
    void newProcess()
      .renew(applicationId, account.id, START, () => {
        asked.resolve();
        return never;
      })
      .catch(() => undefined);
    await asked.promise;
    const server = new StrictServer();
    const waiting = newProcess().renew(applicationId, account.id, START, server.refresh);
    await expect.poll(() => stored(account)).toMatchObject({ owner: expect.any(String) });
    expect(server.refreshes).toBe(0);
    now += OVER_MS;
    expect(await waiting).toEqual({ access: 'a1', refresh: 'r1' });
  });

  test('a frozen process that comes back after its lease loses no tokens', async () => {
    // It has the provider's answer, and does not go on before its lease has expired.
    const { account, server, release, renewed: frozen } = await held();
    now += OVER_MS;
    const second = newProcess().renew(applicationId, account.id, START, async (credentials) => {
      release();
      await frozen;
      return server.refresh(credentials);
    });
    // The second one used the same refresh token, and was refused. The credentials of the first are good.
    expect(await Promise.all([frozen, second])).toEqual(Array(2).fill({ access: 'a1', refresh: 'r1' }));
    expect(await stored(account)).toMatchObject({ credentials: { access: 'a1' }, owner: null });
  });

  test('a reconnection during a refresh wins', async () => {
    const { account, release, renewed } = await held();
    const credentials = { access: 'x', refresh: 'y' };
    await newAccounts().reconnect(applicationId, account.id, { name: account.name, secret: { credentials } });
    release();
    expect(await renewed).toEqual(credentials);
    expect(await stored(account)).toEqual({ credentials, owner: null });
  });

  test('an account that is removed, or another application’s, is a 404', async () => {
    const { account, server, release, renewed } = await held();
    renewed.catch(() => undefined);
    await expect(newProcess().renew('app_other', account.id, START, server.refresh)).rejects.toMatchObject({
      status: 404,
    });
    await newAccounts().remove(applicationId, account.id);
    release();
    await expect(renewed).rejects.toMatchObject({ status: 404, type: 'errors/invalid_resource_identifier' });
    await turn();
  });

  test.runIf(kind === 'PostgreSQL')('two processes with connections of their own cause one refresh', async () => {
    const account = await link();
    const server = new StrictServer();
    const other = openServer(opened.url ?? inject('postgres').url, () => undefined);
    try {
      const processes = [newProcess(), new Renewals(other, secrets, clock)];
      let credentials: unknown = START;
      for (let round = 1; round <= 20; round++) {
        const results = await Promise.all(
          processes.map((process) => process.renew(applicationId, account.id, credentials, server.refresh)),
        );
        expect(server.refreshes).toBe(round);
        expect(results[0]).toEqual(results[1]);
        credentials = results[0];
      }
    } finally {
      await other.destroy();
    }
  });
});
