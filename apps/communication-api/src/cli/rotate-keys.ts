import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { addMasterKey } from '../db/master-key.ts';
import { SealedValues } from '../db/sealed-values.ts';
import { Envelope } from '../security/envelope.ts';
import type { Terminal } from './command-line.ts';
import { openStore, type Store } from './open-store.ts';

/**
 * Puts every secret of the database under the current master key. With `master.key`, a new key is made first, unless an
 * earlier rotation was ended in between.
 * @returns the exit code: 1 if a secret cannot be read
 */
export async function rotateKeys(config: Config, terminal: Terminal, log: Logger): Promise<number> {
  const store = await openStore(config, log);
  try {
    const hasFile = config.SECRET_KEYS === undefined;
    const envelope = await currentEnvelope(store, hasFile, terminal);
    const current = envelope.currentKeyId;
    const values = new SealedValues(store.db, envelope);
    const all = await values.rewrapAll(({ place, done }) => terminal.out(`${place}: ${done} under ${current}\n`));
    const unreadable = all.filter(({ unreadable }) => unreadable > 0);
    for (const { place, unreadable: count } of unreadable)
      terminal.error(`${place}: ${count} cannot be read: their master key is missing, or they are damaged.\n`);
    const others = (await values.uses()).filter(({ keyId }) => keyId !== current);
    if (others.length > 0) {
      if (unreadable.length === 0) terminal.error('Some secrets were changed meanwhile. Run rotate-keys again.\n');
      return 1;
    }
    terminal.out(`Every secret is under ${current}.\n${adviceOf(envelope, hasFile)}`);
    return 0;
  } finally {
    await store.close();
  }
}

async function currentEnvelope({ db, masterKeys, embedded }: Store, hasFile: boolean, terminal: Terminal) {
  const envelope = new Envelope(masterKeys);
  if (embedded === undefined || !hasFile) return envelope;
  const uses = await new SealedValues(db, envelope).uses();
  // The last rotation did not finish, or an older backup was restored.
  if (uses.some(({ keyId }) => keyId !== envelope.currentKeyId)) return envelope;
  const next = new Envelope(addMasterKey(embedded.directory));
  terminal.out(`${next.currentKeyId} is the new master key. Back up ${embedded.directory}/master.key again.\n`);
  return next;
}

function adviceOf({ keyIds }: Envelope, hasFile: boolean): string {
  const older = keyIds.slice(1).join(', ');
  if (older === '')
    return 'To rotate the keys, put a new key in front of SECRET_KEYS, and restart every process first.\n';
  return hasFile
    ? `Older backups need ${older} in master.key. Remove such a line after you delete the backups from its time.\n`
    : `When every process has been restarted with the new key in front, ${older} can be removed from SECRET_KEYS. "doctor" says if it is still in use.\n`;
}
