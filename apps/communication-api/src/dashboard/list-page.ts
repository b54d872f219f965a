import { type IdPrefix, isId } from '../domain/ids.ts';
import type { Page } from '../domain/page.ts';

/** Entries per page. */
const LIMIT = 50;
const MAX_TEXT = 200;

const valueIn = (query: unknown, name: string): unknown => (query as Readonly<Record<string, unknown>>)[name];

/** The page of a list that the query of a request asks for. */
export function pageAsked(query: unknown, name: string, prefix: IdPrefix): Page {
  const value = valueIn(query, name);
  const before = typeof value === 'string' && isId(value, prefix) ? value : undefined;
  return { limit: LIMIT, offset: 0, before };
}

/** The search text of a list. It contains nothing that a database would refuse. */
export function textIn(query: unknown, name: string): string {
  const value = valueIn(query, name);
  return typeof value === 'string'
    ? value
        .replace(/[\p{Cc}\p{Cs}]/gu, '')
        .trim()
        .slice(0, MAX_TEXT)
    : '';
}

/** One of the values that filter a list. Undefined: none of them. */
export function choiceIn<Value extends string>(
  query: unknown,
  name: string,
  values: readonly Value[],
): Value | undefined {
  const value = valueIn(query, name);
  return values.find((each) => each === value);
}

/** The rows that a list shows, and the query of its next page if there is one. */
export interface Listed<Row> {
  readonly rows: readonly Row[];
  readonly next: string | undefined;
}

/**
 * @param rows the page, and the first row of the next one: see `onPage`
 * @param filter the filter of the list, which the next page needs too
 */
export function listed<Row extends { readonly id: string }>(
  rows: readonly Row[],
  name: string,
  filter: Readonly<Record<string, string | undefined>> = {},
): Listed<Row> {
  const shown = rows.slice(0, LIMIT);
  const last = shown.at(-1);
  if (rows.length <= LIMIT || last === undefined) return { rows: shown, next: undefined };
  return { rows: shown, next: `?${queryOf({ ...filter, [name]: last.id })}` };
}

/** A query without empty values. */
export const queryOf = (values: Readonly<Record<string, string | undefined>>): string =>
  new URLSearchParams(
    Object.entries(values).flatMap(([name, value]) => (value === undefined || value === '' ? [] : [[name, value]])),
  ).toString();
