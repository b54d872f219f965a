// What is measured: one decision, requested as users do, and a check that it is the expected one.
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { requirePeer } from 'headgate-bench/peers';

const ROUTE = 'POST /api/v1/emails';
const PLENTY = 1_000_000_000;
const SECONDS = [60, 86_400, 120, 172_800];

/**
 * By name, `(connection, { denied, against })`. `denied`: whether every decision after the first must be a rejection.
 */
export const CANDIDATES = {
  async floor({ floor }) {
    return { decide: await floor(), isExpected: (answer) => answer === 1 };
  },

  async headgate(connection, { denied }) {
    return headgate(connection, 'headgate', denied, await import('headgate'), await import('headgate/redis'));
  },

  /** Another build of headgate, from its dist folder. */
  async against(connection, { denied, against }) {
    const load = (file) => import(pathToFileURL(resolve(against, file)));
    return headgate(connection, 'against', denied, await load('index.js'), await load('redis.js'));
  },

  /** With `denied` it uses its own option for local rejections. */
  rlf({ client }, { denied }) {
    const { RateLimiterRedis } = requirePeer('rate-limiter-flexible');
    const options = denied
      ? { points: 1, duration: SECONDS[1], keyPrefix: 'denied', inMemoryBlockOnConsumed: 1 }
      : { points: PLENTY, duration: SECONDS[0], keyPrefix: 'single' };
    return peer(new RateLimiterRedis({ storeClient: client, ...options }), denied);
  },

  'rlf union'({ client }) {
    const { RateLimiterRedis, RateLimiterUnion } = requirePeer('rate-limiter-flexible');
    const options = { storeClient: client, points: PLENTY };
    const limiters = SECONDS.map(
      (duration) => new RateLimiterRedis({ ...options, duration, keyPrefix: `union${duration}` }),
    );
    return peer(new RateLimiterUnion(...limiters), false);
  },

  /** Its store only counts, so the comparison with the max, which express-rate-limit would make, is made here. */
  async 'rate-limit-redis'({ client }, { denied }) {
    const { RedisStore } = requirePeer('rate-limit-redis');
    const max = denied ? 1 : PLENTY;
    const store = new RedisStore({ sendCommand: (...command) => client.call(...command), prefix: `rl${max}:` });
    await store.init({ windowMs: SECONDS[denied ? 1 : 0] * 1_000 });
    return {
      decide: async (account) => (await store.increment(account)).totalHits <= max,
      isExpected: (accepted) => accepted !== denied,
    };
  },

  'async-ratelimiter'({ client }, { denied }) {
    const RateLimiter = requirePeer('async-ratelimiter');
    const limiter = new RateLimiter({
      db: client,
      max: denied ? 1 : PLENTY,
      duration: SECONDS[denied ? 1 : 0] * 1_000,
      namespace: denied ? 'async1' : 'async',
    });
    return {
      decide: (account) => limiter.get({ id: account }),
      isExpected: ({ remaining }) => (remaining === 0) === denied,
    };
  },
};

async function headgate({ client }, prefix, denied, { createLimiter }, { createRedisStore }) {
  const max = denied ? 1 : PLENTY;
  const limiter = createLimiter({
    store: createRedisStore(client, { deadlineMs: 10_000, prefix: `${prefix}${max}` }),
    limits: { allMethods: [`${max}/2m`, `${max}/2d`], routes: { [ROUTE]: [`${max}/1m`, `${max}/1d`] } },
  });
  return {
    decide: (account) => limiter.consume({ account, route: ROUTE }),
    isExpected: ({ accepted, degraded }) => accepted !== denied && !degraded,
  };
}

/** The limiter rejects its promise with a plain object if it rejects the request. */
function peer(limiter, denied) {
  if (!denied) return { decide: (account) => limiter.consume(account), isExpected: (answer) => answer !== undefined };
  return {
    decide: (account) => limiter.consume(account).catch((rejection) => ({ rejection })),
    isExpected: ({ rejection }) => rejection !== undefined && !(rejection instanceof Error),
  };
}
