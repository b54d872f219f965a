import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Accounts } from '../../src/accounts/accounts.ts';
import { Applications } from '../../src/applications/applications.ts';
import { openEnvelope } from '../../src/db/root-secret.ts';
import { SEALED_COLUMNS, SealedValues } from '../../src/db/sealed-values.ts';
import { Envelope, type MasterKey } from '../../src/security/envelope.ts';
import { Events } from '../../src/webhooks/events.ts';
import { DATABASES, type OpenDatabase } from '../support/databases.ts';

const newKey = (id: string): MasterKey => ({ id, key: randomBytes(32) });
const clock = Date.now;

/** Columns with bytes that are not sealed. */
const NOT_SEALED = ['mock_drafts.raw', 'mock_messages.raw'];

describe.each(DATABASES)('the sealed values on %s', (_, open) => {
  let opened: OpenDatabase;
  let applicationId: string;
  const [k1, k2, k3] = [newKey('old1'), newKey('k2'), newKey('k3')];
  beforeAll(async () => {
    opened = await open();
    ({ id: applicationId } = await new Applications(opened.db, clock).create('Test', 'development'));
  });
  afterAll(() => opened.close());

  const accountsWith = (...keys: MasterKey[]) => new Accounts(opened.db, new Envelope(keys), clock, new Events(clock));
  const link = async (accounts: Accounts, name: string) => {
    const account = await accounts.insert(applicationId, {
      ...{ provider: 'mock', providerUserId: name, name, scopeId: null, secret: { credentials: { name } } },
    });
    return account?.id ?? '';
  };
  const valuesWith = (...keys: MasterKey[]) => new SealedValues(opened.db, new Envelope(keys), 3);
  const count = async (keyId: string, ...keys: MasterKey[]): Promise<number> =>
    (await valuesWith(...keys).uses()).find((use) => use.keyId === keyId)?.values ?? 0;

  test('are in the columns of the list, and no other column has bytes', async () => {
    const { rows } = await sql<{ place: string }>`
      select table_name || '.' || column_name as place from information_schema.columns
      where table_schema = current_schema() and data_type = 'bytea'`.execute(opened.db);
    expect(rows.map(({ place }) => place).sort()).toEqual(
      [...SEALED_COLUMNS.map(({ table, column }) => `${table}.${column}`), ...NOT_SEALED].sort(),
    );
  });

  test('a rotation that is ended goes on, in batches, and leaves nothing under the old key', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 10; i++) ids.push(await link(accountsWith(k1), `a${i}`));
    const before = await openEnvelope(opened.db, [k1]);
    expect(await count('old1', k1)).toBe(11);
    const batches: number[] = [];
    const ended = valuesWith(k2, k1).rewrapAll(({ place, done }) => {
      if (place === 'accounts.secret') batches.push(done);
      if (batches.length === 2) throw new Error('the process ends');
    });
    await expect(ended).rejects.toThrow('the process ends');
    expect(await count('old1', k2, k1)).toBe(4);
    const all = await valuesWith(k2, k1).rewrapAll(() => undefined);
    expect(all).toContainEqual({ place: 'accounts.secret', done: 4, unreadable: 0 });
    expect(await valuesWith(k2).uses()).toEqual([{ keyId: 'k2', values: 11 }]);
    // The old key is not needed any more, and what is derived from the root is as before.
    const accounts = accountsWith(k2);
    for (const [i, id] of ids.entries()) {
      const account = await accounts.find(applicationId, id);
      expect(account && accounts.secretOf(account)).toEqual({ credentials: { name: `a${i}` } });
    }
    const after = await openEnvelope(opened.db, [k2]);
    expect(after.derive('fingerprint')).toEqual(before.derive('fingerprint'));
    expect(await valuesWith(k2).rewrapAll(() => undefined)).toEqual(
      SEALED_COLUMNS.map(({ table, column }) => ({ place: `${table}.${column}`, done: 0, unreadable: 0 })),
    );
  });

  test('a value that another process changes meanwhile is left as that process wrote it', async () => {
    const id = await link(accountsWith(k1), 'changed');
    const changed = accountsWith(k2, k1);
    const values = valuesWith(k2, k1);
    const batch = Reflect.get(values, 'envelope') as Envelope;
    const { rewrap } = batch;
    let writing: Promise<unknown> = Promise.resolve();
    // Between the read of the batch and its update.
    batch.rewrap = (place, sealed) => {
      const value = rewrap.call(batch, place, sealed);
      writing = changed.reconnect(applicationId, id, { name: 'changed', secret: { credentials: 'new' } });
      return value;
    };
    await values.rewrapAll(() => undefined);
    await writing;
    const account = await changed.find(applicationId, id);
    expect(account && changed.secretOf(account)).toEqual({ credentials: 'new' });
    expect(await count('old1', k2, k1)).toBe(0);
  });

  test('values that cannot be opened are counted, and do not keep the others from the rotation', async () => {
    const lost = await link(accountsWith(k3), 'lost');
    const fine = await link(accountsWith(k1), 'fine');
    const all = await valuesWith(k2, k1).rewrapAll(() => undefined);
    expect(all).toContainEqual({ place: 'accounts.secret', done: 1, unreadable: 1 });
    expect(await count('k3', k2)).toBe(1);
    expect(await valuesWith(k2, k3).isKey('k3')).toBe(true);
    expect(await valuesWith(k2, newKey('k3')).isKey('k3')).toBe(false);
    for (const id of [lost, fine]) await accountsWith(k2).remove(applicationId, id);
    expect(await count('k3', k2)).toBe(0);
    expect(await valuesWith(k2, newKey('k3')).isKey('k3')).toBe(true);
  });

  test('a start with other master keys is refused, and several first starts agree on one root', async () => {
    const wrong = expect.objectContaining({ name: 'UserError', exitCode: 2 });
    await expect(openEnvelope(opened.db, [k3])).rejects.toEqual(wrong);
    await expect(openEnvelope(opened.db, [newKey('k2')])).rejects.toThrow(/another master key with the id k2/);
    await opened.db.deleteFrom('service_secrets').execute();
    const envelopes = await Promise.all([1, 2, 3].map(() => openEnvelope(opened.db, [k2])));
    expect(new Set(envelopes.map((each) => Buffer.from(each.derive('csrf')).toString('hex'))).size).toBe(1);
  });
});
