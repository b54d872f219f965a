import { type IdPrefix, isId } from '../domain/ids.ts';
import type { Page } from '../domain/page.ts';

/** Entries per page. */
const LIMIT = 50;

/** The page of a list that the query of a request asks for. */
export function pageAsked(query: unknown, name: string, prefix: IdPrefix): Page {
  const value = (query as Readonly<Record<string, unknown>>)[name];
  const before = typeof value === 'string' && isId(value, prefix) ? value : undefined;
  return { limit: LIMIT, offset: 0, before };
}

/** What is shown of a list, and the query of its next page if there is one. */
export interface Listed<Row> {
  readonly rows: readonly Row[];
  readonly next: string | undefined;
}

/** @param rows the page, and the first row of the next one: see `onPage` */
export function listed<Row extends { readonly id: string }>(rows: readonly Row[], name: string): Listed<Row> {
  const shown = rows.slice(0, LIMIT);
  const last = shown.at(-1);
  return { rows: shown, next: rows.length > LIMIT && last !== undefined ? `?${name}=${last.id}` : undefined };
}
