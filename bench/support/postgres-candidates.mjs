// What is measured: one decision, requested as users do, and a check that it is the expected one.
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { requirePeer } from 'headgate-bench/peers';
import { Redis } from 'ioredis';
import pg from 'pg';
import { CLAIM_CANDIDATES } from './postgres-claim-candidates.mjs';

const ROUTE = 'POST /api/v1/emails';
const PLENTY = 1_000_000_000;
const SECONDS = [60, 86_400, 120, 172_800];

/** By name, `({ url, redisPort, schema, against })`. */
export const CANDIDATES = {
  ...CLAIM_CANDIDATES,

  async floor({ url }) {
    const pool = new pg.Pool({ connectionString: url });
    await pool.query('create table if not exists floor (account text primary key, count bigint not null)');
    const text = `insert into floor (account, count) values ($1, 1)
      on conflict (account) do update set count = floor.count + 1 returning count`;
    return {
      decide: (account) => pool.query(text, [account]),
      isExpected: ({ rows }) => Number(rows[0].count) > 0,
    };
  },

  async headgate(settings) {
    return headgate(settings, 'headgate', await import('headgate'), await import('headgate/postgres'));
  },

  /** Another build of headgate, from its dist folder. */
  async against(settings) {
    const load = (file) => import(pathToFileURL(resolve(settings.against, file)));
    return headgate(settings, 'against', await load('index.js'), await load('postgres.js'));
  },

  async redis({ redisPort }) {
    const { createLimiter } = await import('headgate');
    const { createRedisStore } = await import('headgate/redis');
    const client = new Redis({ port: redisPort, host: '127.0.0.1' });
    return limiterOf(createLimiter, createRedisStore(client, { deadlineMs: 10_000 }));
  },

  async rlf({ url }) {
    const limiter = await flexible(new pg.Pool({ connectionString: url }), SECONDS[0], 'rlf_one');
    return { decide: (account) => limiter.consume(account), isExpected: (answer) => answer !== undefined };
  },

  async 'rlf four'({ url }) {
    const pool = new pg.Pool({ connectionString: url });
    const limiters = await Promise.all(SECONDS.map((seconds) => flexible(pool, seconds, `rlf_${seconds}`)));
    const { RateLimiterUnion } = requirePeer('rate-limiter-flexible');
    const union = new RateLimiterUnion(...limiters);
    return { decide: (account) => union.consume(account), isExpected: (answer) => answer !== undefined };
  },

  /** It creates its own pool. Its store only counts, so the comparison with the max is made here. */
  async 'express-rate-limit store'({ url }) {
    const { PostgresStore } = requirePeer('@acpr/rate-limit-postgresql');
    const { hostname, port, username, pathname } = new URL(url);
    const address = { host: hostname, port: Number(port), user: username, database: pathname.slice(1), password: '' };
    const store = new PostgresStore(address, 'express');
    await store.init({ windowMs: SECONDS[0] * 1_000 });
    return {
      decide: async (account) => (await store.increment(account)).totalHits <= PLENTY,
      isExpected: (accepted) => accepted,
    };
  },
};

async function headgate({ url, schema }, name, { createLimiter }, { createPostgresStore, migrate }) {
  const pool = new pg.Pool({ connectionString: url });
  const options = { schema: schema ?? name };
  await migrate(pool, options);
  const store = createPostgresStore(pool, { ...options, deadlineMs: 10_000 });
  return { ...limiterOf(createLimiter, store), pool, ...options };
}

function limiterOf(createLimiter, store) {
  const limiter = createLimiter({
    store,
    limits: {
      allMethods: [`${PLENTY}/2m`, `${PLENTY}/2d`],
      routes: { [ROUTE]: [`${PLENTY}/1m`, `${PLENTY}/1d`] },
    },
  });
  return {
    decide: (account) => limiter.consume({ account, route: ROUTE }),
    isExpected: ({ accepted, degraded }) => accepted && !degraded,
  };
}

function flexible(storeClient, duration, tableName) {
  const { RateLimiterPostgres } = requirePeer('rate-limiter-flexible');
  return new Promise((done, fail) => {
    const options = { storeClient, points: PLENTY, duration, tableName, keyPrefix: tableName };
    const limiter = new RateLimiterPostgres(options, (error) => (error ? fail(error) : done(limiter)));
  });
}
