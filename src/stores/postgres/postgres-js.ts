import { type Begin, BOOLEAN, type Database, ignore, inTransaction, type Row } from './database.ts';
import { codeOf, NotSentError } from './errors.ts';

/** The members of `sql` of postgres 3 (postgres.js) that the stores use. */
export interface PostgresJsSql {
  /** Runs a statement that is a text. */
  unsafe(text: string): PromiseLike<unknown>;
  /** A function: its types depend on the user's. */
  readonly begin: object;
  readonly options: object;
}

/** `sql` of postgres.js, or its TransactionSql. */
interface PostgresJsConnection {
  unsafe(
    text: string,
    values: readonly (string | null)[],
    options: object,
  ): {
    raw(): Promise<PostgresJsResult | PostgresJsResult[]>;
  };
}

interface PostgresJsResult extends Array<readonly (Uint8Array | null)[]> {
  /** Null if the statement returns no rows. */
  readonly columns: readonly { readonly name: string; readonly type: number }[] | null;
}

export function fromPostgresJs(sql: PostgresJsSql): Database {
  let isEnded = false;
  const query = async (text: string, values: readonly (string | null)[]) => {
    try {
      return await askPostgresJs(sql as unknown as PostgresJsConnection, text, values);
    } catch (error) {
      const code = codeOf(error);
      isEnded ||= code === 'CONNECTION_ENDED';
      // The client did not connect, so it sent nothing.
      throw code === 'CONNECT_TIMEOUT' || code === 'ECONNREFUSED' ? new NotSentError(error) : error;
    }
  };
  return {
    isOpen: () => !isEnded,
    isReady: () => true,
    // The client reports errors only through statements.
    onClientError: () => ignore,
    query,
    transaction: (work, isolation) =>
      inTransaction(
        (run) => (sql.begin as Begin)(run),
        (native: PostgresJsConnection) => ({ query: (text, values) => askPostgresJs(native, text, values) }),
        work,
        isolation,
      ),
  };
}

/** The rows as bytes, because the user's transformations and parsers do not apply to them. */
async function askPostgresJs(
  connection: PostgresJsConnection,
  text: string,
  values: readonly (string | null)[],
): Promise<readonly Row[]> {
  // Whether statements are prepared is the user's choice: the client prepares none if its option `prepare` is false.
  const result = await connection.unsafe(text, [...values], { prepare: true }).raw();
  // Several statements have a list of results.
  const last = 'columns' in result ? result : (result.at(-1) as PostgresJsResult);
  const columns = last.columns ?? [];
  const decoder = new TextDecoder();
  return Array.from(last, (cells) => {
    const row: Record<string, string | boolean | null> = {};
    columns.forEach(({ name, type }, i) => {
      const cell = cells[i] ?? null;
      const value = cell && decoder.decode(cell);
      row[name.toLowerCase()] = value !== null && type === BOOLEAN ? value === 't' : value;
    });
    return row;
  });
}
