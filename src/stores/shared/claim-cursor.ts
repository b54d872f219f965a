import { OptionError } from '../../base/errors.ts';

/** The error for a cursor that the store never makes. The cursor is not shown, because it can be of any length. */
export function wrongCursor(cursor: unknown): OptionError {
  const shown = typeof cursor === 'string' ? `a text of ${cursor.length} characters` : typeof cursor;
  return new OptionError('cursor', cursor, 'must be `next` of a page of this store', shown);
}
