/** One of several processes that send mails, and that are killed: see test/stores/postgres/claim-rows.nightly.test.ts. */
import pg from 'pg';
import { mailer, send } from './mails.ts';

export interface MailTask {
  readonly url: string;
  /** The file of the provider. */
  readonly provider: string;
  readonly keys: readonly string[];
}

process.once('message', async ({ url, provider, keys }: MailTask) => {
  const pool = new pg.Pool({ connectionString: url, max: 8 });
  pool.on('error', () => undefined);
  const idempotency = mailer(pool, provider);
  const left = [...keys];
  const work = async (): Promise<void> => {
    for (let key = left.pop(); key !== undefined; key = left.pop()) await send(idempotency, provider, key);
  };
  await Promise.all(Array.from({ length: 8 }, work));
  await idempotency.close();
  await pool.end();
  process.disconnect();
});
