import { randomBytes } from 'node:crypto';
import { UserError } from '../domain/user-error.ts';
import { Envelope, keyIdOf, type MasterKey } from '../security/envelope.ts';
import type { Database } from './database.ts';

const ID = 'root';
const PLACE = `service_secrets/${ID}/value`;
const BYTES = 32;

/**
 * The envelope of a database. Its root is a separate secret in the database, sealed like every other: so fingerprints,
 * Message-IDs, cookies and tracked links stay valid when the master keys are rotated.
 * @throws UserError if the master keys do not belong to the database
 */
export const openEnvelope = async (db: Database, masterKeys: readonly MasterKey[]): Promise<Envelope> =>
  new Envelope(masterKeys, await rootSecret(db, masterKeys));

/** The root. The first start makes it. */
export async function rootSecret(db: Database, masterKeys: readonly MasterKey[]): Promise<Uint8Array> {
  const envelope = new Envelope(masterKeys);
  const sealed = (await read(db)) ?? (await create(db, envelope));
  try {
    return envelope.open(PLACE, sealed);
  } catch (cause) {
    throw new UserError(
      `SECRET_KEYS or master.key: the secrets of this database are under another master key with the id ${keyIdOf(sealed)}. Put it back: behind the new key, if you rotate the keys.`,
      2,
      { cause },
    );
  }
}

async function read(db: Database): Promise<Uint8Array | undefined> {
  const row = await db.selectFrom('service_secrets').select('value').where('id', '=', ID).executeTakeFirst();
  return row?.value;
}

/** Of several processes that start at the same time, one makes it. */
async function create(db: Database, envelope: Envelope): Promise<Uint8Array> {
  await db
    .insertInto('service_secrets')
    .values({ id: ID, value: envelope.seal(PLACE, randomBytes(BYTES)) })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute();
  const { value } = await db
    .selectFrom('service_secrets')
    .select('value')
    .where('id', '=', ID)
    .executeTakeFirstOrThrow();
  return value;
}
