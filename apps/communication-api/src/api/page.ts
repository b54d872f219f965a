import { z } from 'zod';
import type { Page } from '../domain/page.ts';
import { ServiceError } from '../domain/service-error.ts';

export type { Page };

const MAX = 100;
const DEFAULT = 20;

/**
 * The query of every list: newest first, `limit` per page, and either `offset` or the `next_cursor` of the page before.
 */
export const pageQuery = {
  limit: z.coerce.number().int().min(1).max(MAX).default(DEFAULT).describe(`Entries per page, 1 to ${MAX}.`),
  offset: z.coerce.number().int().min(0).max(1_000_000).optional().describe('Entries to skip.'),
  cursor: z.string().max(200).optional().describe('The next_cursor of the page before. Not together with offset.'),
};

const ID = /^[a-z]{3}_[0-9a-z]{26}$/;

/**
 * @param form of the ids of the list
 * @throws ServiceError 422
 */
export function pageOf(
  query: {
    readonly limit: number;
    readonly offset?: number | undefined;
    readonly cursor?: string | undefined;
  },
  form = ID,
): Page {
  const { limit, offset, cursor } = query;
  if (cursor !== undefined && offset !== undefined)
    throw new ServiceError(422, 'errors/unprocessable_entity', 'Give offset or cursor, not both.');
  const before = cursor === undefined ? undefined : Buffer.from(cursor, 'base64url').toString();
  if (before !== undefined && !form.test(before))
    throw new ServiceError(422, 'errors/unprocessable_entity', 'cursor: use the next_cursor of the page before.');
  return { limit, offset: offset ?? 0, before };
}

/** The schema of a list. */
export const listOf = <Name extends string, Entry extends z.ZodType>(object: Name, entry: Entry) =>
  z
    .object({
      object: z.literal(object),
      data: z.array(entry),
      has_more: z.boolean(),
      next_cursor: z.string().nullable(),
    })
    .meta({
      id: object,
      examples: [{ object, data: entry.meta()?.examples ?? [], has_more: false, next_cursor: null }] as never,
    });

/**
 * The answer of a list.
 * @param rows the page and, if there is one, the first row of the next page: read `limit + 1` rows
 */
export function listAnswer<Name extends string, Row extends { readonly id: string }, Entry>(
  object: Name,
  rows: readonly Row[],
  { limit }: Page,
  entryOf: (row: Row) => Entry,
): { object: Name; data: Entry[]; has_more: boolean; next_cursor: string | null } {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const hasMore = rows.length > limit;
  return {
    object,
    data: shown.map(entryOf),
    has_more: hasMore,
    next_cursor: hasMore && last !== undefined ? Buffer.from(last.id).toString('base64url') : null,
  };
}
