import type { Executor } from 'headgate/postgres';
import { CompiledQuery, type Kysely } from 'kysely';

/** Runs the statements of headgate's stores in a transaction of the caller. */
export const executorOf =
  (transaction: Pick<Kysely<unknown>, 'executeQuery'>): Executor =>
  async (text, values) =>
    (await transaction.executeQuery<object>(CompiledQuery.raw(text, [...values]))).rows;
