import type { Database } from './database.ts';

/**
 * Counts the rows of an application in a table. Until the transaction ends, other transactions that count rows of the
 * application wait: together they cannot exceed a bound. Transactions that only name the application do not wait.
 */
export async function countInTurn(
  applicationId: string,
  table: 'domains' | 'webhook_endpoints',
  transaction: Database,
): Promise<number> {
  await transaction.selectFrom('applications').select('id').where('id', '=', applicationId).forNoKeyUpdate().execute();
  const { count } = await transaction
    .selectFrom(table)
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('application_id', '=', applicationId)
    .executeTakeFirstOrThrow();
  return Number(count);
}
