import { OptionError } from '../../base/errors.ts';
import { checkOptions } from '../../base/options.ts';
import type { NotedStep } from '../../core/claim.ts';

/**
 * Rows of your own tables that change together with a step of a claim, in the same transaction: statements of your SQL
 * by their names, per step. `dispatch` is executed for a claim that is dispatched, `complete` for an outcome that is
 * stored, and `abandon` for a key that is released.
 *
 * A statement reads the relation `step`. It has one row for each command that made this step now and carries a note:
 * `scope text`, `key text`, `note jsonb`, and `now bigint`, the milliseconds of the store's clock. A statement can also
 * read what an earlier one of its step returns, by its name.
 */
export type ClaimRows = { readonly [Step in NotedStep]?: Readonly<Record<string, string>> | undefined };

/** One statement per step. Its parameter is the list of the steps. */
export type RowStatements = { readonly [Step in NotedStep]?: string };

const STEPS: readonly NotedStep[] = ['dispatch', 'complete', 'abandon'];
const NAME = /^(?!step$)[a-z_][a-z0-9_]{0,62}$/;
const STATEMENT = /^\s*(insert|update|delete|merge|select)\b/i;
const SELECT = /^\s*select\b/i;

// The planner takes the limit for the number of rows. Without it, it expects a hundred, and reads whole tables.
const STEP = `step as materialized (
  select each.scope, each.key, each.note, each.now
  from pg_catalog.jsonb_to_recordset($1) as each (scope text, key text, note jsonb, now bigint)
  limit pg_catalog.jsonb_array_length($1)
)`;

/** @throws OptionError */
export function rowStatements(rows: ClaimRows | undefined): RowStatements | undefined {
  if (rows === undefined) return undefined;
  checkOptions(rows, STEPS, 'rows');
  const statements: { [Step in NotedStep]?: string } = {};
  for (const step of STEPS) {
    const named = rows[step];
    if (named !== undefined) statements[step] = statementOf(`rows.${step}`, named);
  }
  return statements;
}

function statementOf(option: string, named: Readonly<Record<string, string>>): string {
  const isObject = typeof named === 'object' && named !== null && !Array.isArray(named);
  const entries = isObject ? Object.entries(named) : [];
  if (entries.length === 0) throw new OptionError(option, named, 'must be an object of statements by their names');
  entries.forEach(([name, text], i) => {
    const place = `${option}.${name}`;
    if (!NAME.test(name))
      throw new OptionError(place, name, 'must be named by 1 to 63 of a-z, 0-9 and _, not "step", and no digit first');
    if (typeof text !== 'string' || !STATEMENT.test(text))
      throw new OptionError(
        place,
        text,
        'must be one statement that begins with insert, update, delete, merge or select',
      );
    if (/;\s*$/.test(text)) throw new OptionError(place, text, 'must not end with a semicolon');
    const later = entries.slice(i + 1);
    const isRead = later.some(([, other]) => new RegExp(`\\b${name}\\b`, 'i').test(other));
    // PostgreSQL executes a select in a WITH only if another statement reads it.
    if (later.length > 0 && SELECT.test(text) && !isRead)
      throw new OptionError(place, text, 'is a select that no later statement reads, so it would not be executed');
  });
  const last = entries.length - 1;
  const parts = entries.map(([name, text], i) => (i === last ? text : `"${name}" as (\n${text}\n)`));
  return `with ${[STEP, ...parts.slice(0, last)].join(',\n')}\n${parts[last]}`;
}
