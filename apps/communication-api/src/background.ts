import type { Database } from './db/database.ts';
import { Retention } from './journal/retention.ts';
import { Sweeper } from './journal/sweeper.ts';
import type { Rooms } from './rooms.ts';

/** The work of a process beside answering requests: jobs, sweeps of the journal, retention and daily checks. */
export interface Background {
  start(): void;
  /** Begins no new work, and waits until the running work ends. */
  close(): Promise<void>;
}

export interface BackgroundParts {
  readonly rooms: Rooms;
  readonly db: Database;
}

export function createBackground({ rooms, db }: BackgroundParts): Background {
  const { config, sends, links, events, conversations, queue, domainChecks, log } = rooms;
  const { accounts, mailAccounts, providers, people, idempotency, sender } = rooms;
  const timeoutMs = config.SEND_TIMEOUT_MS;
  const sweeper = new Sweeper({ idempotency, sends, sender, accounts, mailAccounts, providers, log, timeoutMs });
  const retention = new Retention(
    [
      { what: 'addresses and subjects of sent emails', erase: (limit) => sends.old.eraseContents(limit) },
      { what: 'sent emails', erase: (limit) => sends.old.deleteOld(limit) },
      { what: 'links', erase: (limit) => links.deleteOld(limit) },
      { what: 'requests to webhook endpoints', erase: (limit) => conversations.deleteOld(limit) },
      { what: 'events', erase: (limit) => events.deleteOld(limit, db) },
      { what: 'sessions of the dashboard', erase: (limit) => people.sessions.deleteOld(limit) },
      { what: 'invitations', erase: (limit) => people.invitations.deleteOld(limit) },
      { what: 'entries of the audit log', erase: (limit) => people.audit.deleteOld(limit) },
    ],
    log,
  );
  return {
    start: () => {
      for (const each of [queue, sweeper, retention, domainChecks]) each.start();
    },
    close: async () => {
      await Promise.all([queue, sweeper, retention, domainChecks].map((each) => each.close()));
    },
  };
}
