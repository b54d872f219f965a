import { createIdempotency, createLimiter } from 'headgate';
import pg from 'pg';
import { createPostgresClaimStore, createPostgresStore, migrate } from 'postgres-store';

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10, connectionTimeoutMillis: 5_000 });
pool.on('error', (error) => console.error(error.message)); // without a listener, a restart of the server ends the process
await migrate(pool); // creates the schema headgate; needs the right to do so

const limiter = createLimiter({ store: createPostgresStore(pool), limits: { allMethods: ['2/1h'] } });
for (let i = 0; i < 3; i++) console.log((await limiter.consume({ account: 'acc_1', route: 'GET /' })).accepted);

const idempotency = createIdempotency({ store: createPostgresClaimStore(pool) });
for (let i = 0; i < 2; i++) {
  const result = await idempotency.run('key 1', { to: 'ada@example.com' }, () => 'sent');
  console.log(result.kind);
}

await idempotency.close();
await pool.end(); // the pool is yours: the stores never connect or close it
