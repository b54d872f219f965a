import { type SelectQueryBuilder, sql } from 'kysely';
import type { Page } from '../domain/page.ts';
import type { Tables } from './tables.ts';

/** For `$call` of the query of a list: reads one page, and the first entry of the next page if there is one. */
export const onPage =
  ({ limit, offset, before }: Page) =>
  <Table extends keyof Tables, Row>(list: SelectQueryBuilder<Tables, Table, Row>) =>
    (before === undefined ? list : list.where(sql<boolean>`id < ${before}`))
      .orderBy(sql`id`, 'desc')
      .limit(limit + 1)
      .offset(offset);
