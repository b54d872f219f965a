import { type RawBuilder, sql } from 'kysely';

/** A value for a JSON column. The drivers do not agree on how they write arrays, so the text is made here. */
export const json = <Value>(value: Value): RawBuilder<Value> => sql<Value>`${JSON.stringify(value)}::jsonb`;
