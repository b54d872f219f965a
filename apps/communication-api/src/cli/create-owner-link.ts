import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { joinPath } from '../dashboard/paths.ts';
import { createPeople } from '../people/people.ts';
import type { Terminal } from './command-line.ts';
import { openStore } from './open-store.ts';

/**
 * Makes the link by which a person becomes an Owner: the first Owner, or an Owner who lost the password. It is the only
 * line on the standard output.
 */
export async function createOwnerLink(config: Config, terminal: Terminal, log: Logger): Promise<void> {
  const store = await openStore(config, log);
  try {
    const token = await createPeople(store.db, Date.now).invitations.createOwnerLink();
    terminal.error('Open this link within an hour. It works once, and gives all rights of an Owner:\n');
    terminal.out(`${config.BASE_URL}${joinPath(token)}\n`);
  } finally {
    await store.close();
  }
}
