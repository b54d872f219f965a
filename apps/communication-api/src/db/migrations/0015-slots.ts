import { migrate } from 'headgate/postgres';
import type { Kysely } from 'kysely';
import { executorOf } from '../executor.ts';

/** The library counts requests in flight, and knows cooldowns. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await migrate(executorOf(db));
}
