import { monotonicClock } from '../../core/clock.ts';
import { listenTo } from '../shared/ready.ts';
import { BOOLEAN, type Connection, type Database, ignore, type Row, throwCommitError } from './database.ts';
import { CommitError, codeOf, isOfStatement, NotSentError } from './errors.ts';

/** The members of `Pool` of pg 8 that the stores use. The package itself is not imported. */
export interface PgPool {
  /** Takes a connection from the pool. */
  connect(): Promise<unknown>;
  /** Runs a statement on any connection. */
  query(text: string): Promise<unknown>;
  readonly totalCount: number;
  readonly waitingCount: number;
}

/** A pool queues each call that waits for a connection, and has no bound. */
const MAX_WAITING = 1_000;
/**
 * A connection that did not answer until so long after the deadline is closed, because a network that is cut reports no
 * error for hours.
 */
const DEAD_AFTER_MS = 10_000;

/** SQLSTATE of a write on a server that was demoted, or on a standby. */
const READ_ONLY = '25006';

interface PgResult {
  readonly command: string;
  readonly rows: Row[];
}

/** A connection of a pool of pg. */
interface PgClient {
  query(config: object): Promise<PgResult | PgResult[]>;
  on(event: 'error', listener: () => void): unknown;
  off(event: 'error', listener: () => void): unknown;
  end(): Promise<void>;
  release(destroy: boolean): void;
}

/** Applications replace the global parsers of pg, so each statement is given its own. */
const TYPES = {
  getTypeParser: (type: number) => (text: string) => (type === BOOLEAN ? text === 't' : text),
};

export function fromPg(pool: PgPool): Database {
  /** Runs `work` with a connection of the pool. */
  const connected = async <T>(work: (client: PgClient) => Promise<T>, until?: number): Promise<T> => {
    const client = await (pool.connect() as Promise<PgClient>).catch((error: unknown) => {
      throw new NotSentError(error);
    });
    // Without a listener, an error of the connection would end the process. The statement fails with it, too.
    client.on('error', ignore);
    let isBroken = false;
    try {
      if (until !== undefined && monotonicClock.now() > until)
        throw new NotSentError(new Error('no connection of the pool was free in time'));
      return await work(client);
    } catch (error) {
      // After a failover, a new connection may lead to the new primary.
      isBroken = !(error instanceof NotSentError) && (!isOfStatement(error) || codeOf(error) === READ_ONLY);
      throw error;
    } finally {
      client.off('error', ignore);
      client.release(isBroken);
    }
  };
  return {
    isOpen: () => !['ended', 'ending'].some((flag) => Reflect.get(pool, flag) === true),
    isReady: () => pool.waitingCount < MAX_WAITING,
    onClientError: (listener) => listenTo(pool, listener),
    query: (text, values, until) =>
      connected(async (client) => {
        if (until === undefined) return (await askPg(client, text, values)).rows;
        const deadAfterMs = Math.max(0, until - monotonicClock.now()) + DEAD_AFTER_MS;
        const timer = setTimeout(() => void client.end().catch(ignore), deadAfterMs);
        try {
          return (await askPg(client, text, values)).rows;
        } finally {
          clearTimeout(timer);
        }
      }, until),
    async transaction(work, isolation) {
      const settle = await connected(async (client) => {
        const ask = (text: string) => askPg(client, text, []);
        await ask(isolation === undefined ? 'begin' : `begin isolation level ${isolation}`);
        const connection: Connection = { query: async (text, values) => (await askPg(client, text, values)).rows };
        try {
          const result = await work(connection, client);
          // The commit of a failed transaction rolls it back, without an error.
          const { command } = await ask('commit').catch(throwCommitError);
          return command === 'COMMIT' ? () => result : throwRolledBack;
        } catch (error) {
          if (error instanceof CommitError) throw error;
          // The connection is fine if it can roll back. If it is not, then the server rolls back.
          if (!(await ask('rollback').then(() => true, ignore))) throw error;
          return () => {
            throw error;
          };
        }
      });
      return settle();
    },
  };
}

async function askPg(client: PgClient, text: string, values: readonly (string | null)[]): Promise<PgResult> {
  const config = { text, types: TYPES };
  const result = await client.query(values.length === 0 ? config : { ...config, values: [...values] });
  return Array.isArray(result) ? (result.at(-1) as PgResult) : result;
}

function throwRolledBack(): never {
  throw new Error('a statement of the transaction failed, so the commit rolled it back');
}
