import { PGlite } from '@electric-sql/pglite';

/** A dump of the database that an instance starts with. */
type Template = Uint8Array | undefined;

/** The state of a new database: its schema, and its rows by their table. */
interface Beginning {
  readonly schema: string;
  readonly rows: Readonly<Record<string, string>>;
}

interface Instance {
  readonly pglite: PGlite;
  readonly beginning: Beginning;
}

/** Instances of this process that no test uses. A start takes longer than most test files. */
const idle: Instance[] = [];

/**
 * A PGlite with the database of a template. `close` empties it for the next user of this process, unless its schema was
 * changed. After that, its last user cannot use it any more.
 */
export async function openPglite(template: Template): Promise<PGlite> {
  const { pglite, beginning } = idle.pop() ?? (await create(template));
  let isOpen = true;
  const close = async (): Promise<void> => {
    if (!isOpen) return;
    isOpen = false;
    if (await reset({ pglite, beginning })) idle.push({ pglite, beginning });
    else await pglite.close();
  };
  return new Proxy(pglite, {
    get: (target, name) => {
      if (name === 'close') return close;
      if (name === 'closed') return !isOpen;
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (!isOpen) throw new Error('PGlite is closed');
      return value.bind(target);
    },
  });
}

async function create(template: Template): Promise<Instance> {
  const options = template === undefined ? {} : { loadDataDir: new Blob([new Uint8Array(template)]) };
  const pglite = await PGlite.create(options);
  const rows: Record<string, string> = {};
  for (const table of await tablesOf(pglite)) {
    const { rows: found } = await pglite.query<{ all: string | null }>(
      `select json_agg(t)::text as all from ${table} t`,
    );
    if (found[0]?.all) rows[table] = found[0].all;
  }
  return { pglite, beginning: { schema: await schemaOf(pglite), rows } };
}

/** @returns whether the database is as it was in the beginning */
async function reset({ pglite, beginning }: Instance): Promise<boolean> {
  await pglite.exec('rollback');
  await pglite.exec('discard all');
  if ((await schemaOf(pglite)) !== beginning.schema) return false;
  const tables = (await tablesOf(pglite)).join();
  if (tables !== '') await pglite.exec(`truncate ${tables} restart identity cascade`);
  for (const [table, rows] of Object.entries(beginning.rows))
    await pglite.query(
      `insert into ${table} overriding system value select * from json_populate_recordset(null::${table}, $1)`,
      [rows],
    );
  return true;
}

async function tablesOf(pglite: PGlite): Promise<readonly string[]> {
  const { rows } = await pglite.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname in ('public', 'headgate')
      order by schemaname, tablename`,
  );
  return rows.map(({ name }) => name);
}

/** Each column, index and constraint of the tables, as one text. */
async function schemaOf(pglite: PGlite): Promise<string> {
  const { rows } = await pglite.query(`
    select c.relname, c.relkind, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull,
      pg_get_expr(d.adbin, d.adrelid) as default,
      case when c.relkind = 'i' and a.attnum = 1 then pg_get_indexdef(c.oid) end as index,
      (select string_agg(o.conname || pg_get_constraintdef(o.oid), ' ' order by o.conname)
        from pg_constraint o where o.conrelid = c.oid and a.attnum = 1) as constraints
    from pg_class c join pg_attribute a on a.attrelid = c.oid
      left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
    where c.relnamespace::regnamespace::text in ('public', 'headgate') and a.attnum > 0
    order by c.relname, a.attnum`);
  return JSON.stringify(rows);
}
