import { InputError } from '../api/input.ts';

/** Limit and cursor of a list request. */
export interface PageRequest {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/**
 * A page of a list whose newest entries are at the end of its ids.
 * @throws InputError for a cursor that this process did not make
 */
export function pageOf<Entry>(
  list: readonly Entry[],
  { limit, cursor }: PageRequest,
): { readonly entries: readonly Entry[]; readonly next: string | null } {
  const from = cursor === undefined ? 0 : Number(readCursor(cursor, /^\d{1,9}$/));
  const end = from + limit;
  return { entries: list.slice(from, end), next: end < list.length ? cursorOf(String(end)) : null };
}

/** Makes a cursor that clients cannot read, so that they do not depend on its content. */
export function cursorOf(position: string): string {
  return Buffer.from(position).toString('base64url');
}

/** @throws InputError */
export function readCursor(cursor: string, form: RegExp): string {
  const position = Buffer.from(cursor, 'base64url').toString('latin1');
  if (form.test(position) && cursorOf(position) === cursor) return position;
  throw wrongCursor();
}

export function wrongCursor(): InputError {
  return new InputError([{ path: 'cursor', reason: 'must be `next` of an answer of this list' }]);
}
