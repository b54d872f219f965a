import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { joinPath } from '../dashboard/paths.ts';
import { UserError } from '../domain/user-error.ts';
import { createPeople } from '../people/people.ts';
import { Envelope } from '../security/envelope.ts';
import type { Terminal } from './command-line.ts';
import { openStore, type Store } from './open-store.ts';

/**
 * Makes the link by which a person becomes an Owner: the first Owner, or an Owner who lost the password. It is the only
 * line on the standard output.
 */
export async function createOwnerLink(config: Config, terminal: Terminal, log: Logger): Promise<void> {
  const store = await openStore(config, log);
  try {
    const token = await peopleOf(store).invitations.createOwnerLink();
    terminal.error('Open this link within an hour. It works once, and gives all rights of an Owner:\n');
    terminal.out(`${config.BASE_URL}${joinPath(token)}\n`);
  } finally {
    await store.close();
  }
}

/** Removes the second factor of a login whose device is lost, and ends its sessions. */
export async function resetSecondFactor(config: Config, email: string, terminal: Terminal, log: Logger): Promise<void> {
  const store = await openStore(config, log);
  try {
    const login = email.trim().toLowerCase();
    const result = await peopleOf(store).secondFactors.resetByOperator(login);
    if (result === 'unknown login') throw new UserError(`reset-second-factor: there is no login ${login}`, 1);
    terminal.out(
      result === 'reset'
        ? `${login} signs in with the password only, until a second factor is set up again.\n`
        : `${login} has no second factor.\n`,
    );
  } finally {
    await store.close();
  }
}

const peopleOf = ({ db, masterKeys }: Store) => createPeople(db, Date.now, new Envelope(masterKeys));
