import { OptionError } from '../../base/errors.ts';
import { databaseOf, type PostgresClient } from './client.ts';
import { type Connection, type Database, ignore } from './database.ts';

/** Runs one statement in a transaction of your own. Each `$n` stands in `text` once, in order. Returns the rows. */
export type Executor = (
  text: string,
  values: readonly (string | null)[],
) => PromiseLike<readonly object[] | { readonly rows: readonly object[] }>;

const EXECUTOR = 'must be a function (text, values) that runs a statement in your transaction and returns its rows';

/** @throws OptionError */
export function connectionOf(executor: Executor): Connection {
  if (typeof executor !== 'function') throw new OptionError('executor', executor, EXECUTOR);
  return {
    async query(text, values) {
      const answer = await executor(text, values);
      const rows: unknown = 'rows' in answer ? answer.rows : answer;
      if (!Array.isArray(rows)) throw new OptionError('executor()', rows, 'must return the rows');
      return rows;
    },
  };
}

/**
 * The database of a client, or an open transaction in place of it. The transaction belongs to its caller, so it is always
 * open and ready here: a statement that cannot be sent fails.
 * @throws OptionError
 */
export function databaseIn(client: PostgresClient | Executor): Database {
  // The clients of postgres.js and of Knex are functions, too.
  if (typeof client !== 'function' || 'unsafe' in client || 'raw' in client)
    return databaseOf('client', client as PostgresClient);
  const connection = connectionOf(client);
  return {
    query: connection.query,
    transaction: (work) => work(connection, client),
    isOpen: () => true,
    isReady: () => true,
    onClientError: () => ignore,
  };
}
