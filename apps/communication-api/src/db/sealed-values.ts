import { sql } from 'kysely';
import { type Envelope, keyName, WRAPPED } from '../security/envelope.ts';
import type { Database } from './database.ts';
import type { Tables } from './tables.ts';

/** A column of sealed values. Its value in a row is sealed for the place `table/id/column`. */
export interface SealedColumn {
  readonly table: keyof Tables;
  readonly column: string;
  /** The column of the row's id. Default: `id`. */
  readonly id?: string;
}

/** Every column with sealed values. A test compares this with the schema. */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  { table: 'service_secrets', column: 'value' },
  { table: 'accounts', column: 'secret' },
  { table: 'auth_links', column: 'config' },
  { table: 'wizard_sessions', column: 'data' },
  { table: 'sends', column: 'envelope' },
  { table: 'sent_copies', column: 'message', id: 'send_id' },
  { table: 'webhook_endpoints', column: 'secrets' },
  { table: 'second_factors', column: 'secret', id: 'member_id' },
];

/** How many values are under a master key. */
export interface KeyUse {
  readonly keyId: string;
  readonly values: number;
}

/** The progress of a rotation in one column. */
export interface Rewrapped {
  readonly place: string;
  /** Values that are under the current key now. */
  readonly done: number;
  /** Values that could not be opened: their key is not known, or they are damaged. */
  readonly unreadable: number;
}

/** A value may be large, so only its head is read: the name of its master key, and its data key. */
interface SealedRow {
  readonly id: string;
  readonly head: Uint8Array;
}

/** Rows per transaction. */
const AT_ONCE = 500;

/** The sealed values of all tables, for the rotation of the master keys. The running service does not need this. */
export class SealedValues {
  constructor(
    private readonly db: Database,
    private readonly envelope: Envelope,
    private readonly atOnce = AT_ONCE,
  ) {}

  /** The master keys that values are under, whether they are known or not. */
  async uses(): Promise<readonly KeyUse[]> {
    const counts = new Map<string, number>();
    for (const { table, column } of SEALED_COLUMNS) {
      const value = sql.ref(column);
      const { rows } = await sql<{ key_id: string; count: string }>`
        select convert_from(substring(${value} from 2 for get_byte(${value}, 0)), 'LATIN1') as key_id, count(*) as count
        from ${sql.table(table)} where length(${value}) > 0 group by key_id`.execute(this.db);
      for (const { key_id, count } of rows) counts.set(key_id, (counts.get(key_id) ?? 0) + Number(count));
    }
    return [...counts].map(([keyId, values]) => ({ keyId, values }));
  }

  /** Whether the known key of this id opens a value that is under it. True without such a value. */
  async isKey(keyId: string): Promise<boolean> {
    for (const column of SEALED_COLUMNS) {
      const [row] = await this.#rows(column, sql`=`, keyId, '', 1);
      if (row === undefined) continue;
      return this.#rewrap(column, row) !== undefined;
    }
    return true;
  }

  /**
   * Puts every value under the current master key. Only the wrapped data keys change. The rotation can be ended at any
   * time, and continues from there. Other processes may work meanwhile: if one of them changes a value, it stays as
   * they left it.
   * @param onBatch is called after each transaction
   */
  async rewrapAll(onBatch: (soFar: Rewrapped) => void): Promise<readonly Rewrapped[]> {
    const all: Rewrapped[] = [];
    for (const column of SEALED_COLUMNS) all.push(await this.#rewrapColumn(column, onBatch));
    return all;
  }

  async #rewrapColumn(column: SealedColumn, onBatch: (soFar: Rewrapped) => void): Promise<Rewrapped> {
    let result: Rewrapped = { place: `${column.table}.${column.column}`, done: 0, unreadable: 0 };
    let after = '';
    for (;;) {
      const rows = await this.#rows(column, sql`<>`, this.envelope.currentKeyId, after, this.atOnce);
      const last = rows.at(-1);
      if (last === undefined) return result;
      after = last.id;
      const { done, unreadable } = await this.#rewrapRows(column, rows);
      result = { ...result, done: result.done + done, unreadable: result.unreadable + unreadable };
      onBatch(result);
    }
  }

  async #rewrapRows(column: SealedColumn, rows: readonly SealedRow[]): Promise<Omit<Rewrapped, 'place'>> {
    let [done, unreadable] = [0, 0];
    await this.db.transaction().execute(async (transaction) => {
      for (const row of rows) {
        const head = this.#rewrap(column, row);
        if (head === undefined) unreadable++;
        else if (await this.#replaceHead(column, row, head, transaction)) done++;
      }
    });
    return { done, unreadable };
  }

  /** Returns false if the value changed since its head was read. */
  async #replaceHead(
    { table, column, id = 'id' }: SealedColumn,
    row: SealedRow,
    head: Uint8Array,
    db: Database,
  ): Promise<boolean> {
    const value = sql.ref(column);
    const length = sql.lit(row.head.length);
    const { numAffectedRows } = await sql`
      update ${sql.table(table)}
      set ${value} = ${head}::bytea || substring(${value} from ${length} + 1)
      where ${sql.ref(id)} = ${row.id} and substring(${value} from 1 for ${length}) = ${row.head}`.execute(db);
    return numAffectedRows === 1n;
  }

  #rewrap({ table, column }: SealedColumn, { id, head }: SealedRow): Uint8Array | undefined {
    try {
      return this.envelope.rewrap(`${table}/${id}/${column}`, head);
    } catch {
      return undefined;
    }
  }

  /** Values that are, or are not, under a key. Each value begins with the name of its key. */
  async #rows(
    { table, column, id = 'id' }: SealedColumn,
    relation: ReturnType<typeof sql>,
    keyId: string,
    after: string,
    limit: number,
  ): Promise<readonly SealedRow[]> {
    const name = keyName(keyId);
    const value = sql.ref(column);
    const { rows } = await sql<SealedRow>`
      select ${sql.ref(id)} as id, substring(${value} from 1 for get_byte(${value}, 0) + 1 + ${sql.lit(WRAPPED)}) as head
      from ${sql.table(table)}
      where ${sql.ref(id)} > ${after} and length(${value}) > 0
        and substring(${value} from 1 for ${sql.lit(name.length)}) ${relation} ${name}
      order by 1 limit ${sql.lit(limit)}`.execute(this.db);
    return rows;
  }
}
