// How the PostgreSQL store behaves with many rows: their size, the time of a decision beside a small table, and whether
// rows that are over leave as fast as new ones come. It takes about 15 minutes and 8 GB: it is not a topic of the page.
//   node bench/postgres-rows.mjs [millions of rows, by default 10]

import { createLimiter } from 'headgate';
import { createPostgresStore, migrate } from 'headgate/postgres';
import { startPostgresServer } from 'headgate-bench/postgres-server';
import pg from 'pg';

const ROWS = Number(process.argv[2] ?? 10) * 1_000_000;
const ROWS_PER_STATEMENT = 100_000;
const SMALL = 500;
const CONCURRENCY = 64;
const PLENTY = 1_000_000_000;
const ROUTE = 'POST /api/v1/emails';
const LIMITS = { allMethods: [`${PLENTY}/2h`, `${PLENTY}/2d`], routes: { [ROUTE]: [`${PLENTY}/1h`, `${PLENTY}/1d`] } };
const DURATIONS = { 0: [3_600_000, 86_400_000], 1: [7_200_000, 172_800_000] };

const server = await startPostgresServer();
const pool = new pg.Pool({ connectionString: server.url });
const show = (what, value) => console.log(`${what}: ${value}`);
try {
  const small = await limiterIn('small');
  const large = await limiterIn('large');
  await fill();
  await decisions(small, (i) => i % SMALL, 2);
  await sizes('filled');
  for (let round = 1; round <= 5; round++) {
    show(`round ${round}, µs per decision, ${SMALL} accounts`, await decisions(small, (i) => i % SMALL, 4));
    show(`round ${round}, µs per decision, ${ROWS} rows`, await decisions(large, random, 4));
  }
  // The older half of the rows is over.
  const over = 'select count(*)::int as rows from large.counters where expires <= large.clock_1() / 60000';
  for (let round = 1; round <= 3; round++) {
    const before = (await pool.query(over)).rows[0].rows;
    let created = 0;
    const micros = await decisions(large, () => ROWS * (round + 1) + created++, 20);
    const left = (await pool.query(over)).rows[0].rows;
    show(`round ${round}, new accounts`, created);
    show(`round ${round}, rows that are over, before and after`, `${before}, ${left}`);
    show(`round ${round}, µs per decision about a new account`, micros);
  }
  await sizes('after expiry');
} finally {
  await pool.end();
  await server.stop();
}

async function limiterIn(schema) {
  await migrate(pool, { schema });
  return createLimiter({ store: createPostgresStore(pool, { schema, deadlineMs: 60_000 }), limits: LIMITS });
}

/** Makes rows as the store does: account_0 and so on, with four windows that began three days ago, or begin now. */
async function fill() {
  const digest = (text) =>
    `substr(encode(sha256(decode(regexp_replace(encode(${text}::bytea, 'hex'), '(..)', '\\100', 'g'), 'hex')), 'hex'), 1, 32)::uuid`;
  const windows = Object.entries(DURATIONS).flatMap(([kind, durations]) =>
    durations.map((duration) => `${duration * 4 + Number(kind)}, now, 1`),
  );
  const began = performance.now();
  for (let from = 0; from < ROWS; from += ROWS_PER_STATEMENT) {
    const ago = from < ROWS / 2 ? 259_200_000 : 0;
    await pool.query(`insert into large.counters (account, route, expires, windows)
      select ${digest("('account_' || i)")}, ${digest(`'${ROUTE}'`)}, large.minute_1(now + ${DURATIONS[1][1]}),
        array[${windows}]
      from generate_series(${from}, ${from + ROWS_PER_STATEMENT - 1}) as i, (select large.clock_1() - ${ago} as now) as clock`);
    if ((from / ROWS_PER_STATEMENT) % 10 === 9)
      console.error(`${from + ROWS_PER_STATEMENT} rows, ${Math.round((performance.now() - began) / 1_000)} s`);
  }
  await pool.query('vacuum analyze large.counters');
}

/** An account whose windows are not over. */
function random() {
  return Math.floor(((1 + Math.random()) * ROWS) / 2);
}

/** Microseconds per decision. */
async function decisions(limiter, account, seconds) {
  let count = 0;
  let degraded = 0;
  const end = performance.now() + seconds * 1_000;
  const worker = async () => {
    while (performance.now() < end) {
      const decision = await limiter.consume({ account: `account_${account(count)}`, route: ROUTE });
      if (!decision.accepted) throw new Error(`unexpected ${JSON.stringify(decision)}`);
      if (decision.degraded) degraded++;
      count++;
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  if (degraded > 0) throw new Error(`${degraded} decisions without PostgreSQL`);
  return ((seconds * 1e6) / count).toFixed(1);
}

async function sizes(when) {
  const { rows } = await pool.query(`select pg_relation_size('large.counters')::float8 as heap,
    pg_relation_size('large.counters_pkey')::float8 as pairs, pg_relation_size('large.counters_by_end')::float8 as ends,
    count(*)::float8 as rows from large.counters`);
  const [{ heap, pairs, ends, rows: count }] = rows;
  const per = (bytes) => (bytes / count).toFixed(0);
  show(`${when}: rows`, count);
  show(
    `${when}: bytes per row`,
    `${per(heap + pairs + ends)} (rows ${per(heap)}, primary key ${per(pairs)}, ends ${per(ends)})`,
  );
}
