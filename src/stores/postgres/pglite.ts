import { type Begin, type Database, ignore, inTransaction, type Row } from './database.ts';

/** The members of PGlite that the stores use. */
export interface PgliteDatabase {
  /** Runs one statement. */
  query(text: string): Promise<unknown>;
  /** Runs any number of statements. */
  exec(text: string): Promise<unknown>;
  /** A function. */
  readonly transaction: object;
  readonly closed: boolean;
}

/** PGlite, or its Transaction. */
interface PgliteConnection {
  query(text: string, values: readonly (string | null)[]): Promise<{ rows: Readonly<Record<string, unknown>>[] }>;
  exec(text: string): Promise<readonly { rows: Readonly<Record<string, unknown>>[] }[]>;
}

export function fromPglite(database: PgliteDatabase): Database {
  return {
    isOpen: () => !database.closed,
    isReady: () => true,
    onClientError: () => ignore,
    query: (text, values) => askPglite(database as unknown as PgliteConnection, text, values),
    transaction: (work, isolation) =>
      inTransaction(
        (run) => (database.transaction as Begin).call(database, run),
        (native: PgliteConnection) => ({ query: (text, values) => askPglite(native, text, values) }),
        work,
        isolation,
      ),
  };
}

async function askPglite(
  connection: PgliteConnection,
  text: string,
  values: readonly (string | null)[],
): Promise<readonly Row[]> {
  const result = values.length === 0 ? (await connection.exec(text)).at(-1) : await connection.query(text, values);
  return (result?.rows ?? []).map((row) =>
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => [
        name,
        value === null || typeof value === 'boolean' ? value : String(value),
      ]),
    ),
  );
}
