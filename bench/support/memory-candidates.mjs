// One check of a key in memory, by each package as its own documentation says. The topics memory, bytes and stall
// measure these candidates.
import { createLimiter } from 'headgate';
import { createMemoryStore } from 'headgate/memory';
import { requirePeer } from 'headgate-bench/peers';

const ROUTE = 'POST /api/v1/emails';
const ONLY_COUNTS = 'one window; charges rejected requests; no memory bound; only counts, the middleware compares';
const { timeOrigin } = performance;
/** The same as headgate's default clock. */
const now = () => Math.floor(timeOrigin + performance.now());

/**
 * By name:
 * - `windows`: how many windows a check looks at;
 * - `waits`: whether a check is awaited;
 * - `less`: what it does less than headgate;
 * - `make({ accounts, max, windowsMs, clock })` returns `ask(account)`, `isAccepted(answer)` and `size()`, the number
 *   of keys in the store. If `ask` rejects with a value that is not an Error, the request is rejected.
 *
 * Peers with one window have the first of the four windows.
 */
export const CANDIDATES = {
  'floor, sync': { ...floor(), less: 'only yes or no; no memory bound, never removes a key, no routes' },
  'headgate, consumeSync': {
    windows: 4,
    make: (settings) => headgate(settings, (limiter) => (account) => limiter.consumeSync({ account, route: ROUTE })),
  },
  limiter: {
    windows: 1,
    less: 'one bucket, in a Map of the user’s own; no memory bound, never removes a key',
    make({ max, windowsMs }) {
      const { RateLimiter } = requirePeer('limiter');
      const limiters = new Map();
      const ask = (account) => {
        let limiter = limiters.get(account);
        if (limiter === undefined) {
          limiter = new RateLimiter({ tokensPerInterval: max, interval: windowsMs[0] });
          limiters.set(account, limiter);
        }
        return limiter.tryRemoveTokens(1);
      };
      return { ask, isAccepted: Boolean, size: () => limiters.size };
    },
  },
  'hono-rate-limiter': {
    windows: 1,
    less: ONLY_COUNTS,
    make: (settings) => countingStore(requirePeer('hono-rate-limiter').MemoryStore, settings),
  },
  '@fastify/rate-limit': {
    windows: 1,
    less: 'one window; charges rejected requests; its memory bound evicts live counters',
    make({ accounts, max, windowsMs }) {
      const LocalStore = requirePeer('@fastify/rate-limit/store/LocalStore');
      const store = new LocalStore(false, false, Math.max(accounts.length, 5_000));
      let answer;
      const callback = (_, result) => {
        answer = result;
      };
      const ask = (account) => {
        store.incr(account, callback, windowsMs[0], max);
        return answer;
      };
      return { ask, isAccepted: ({ current }) => current <= max, size: () => store.lru.size };
    },
  },
  'floor, awaited': { ...floor((ask) => async (account) => ask(account)), waits: true, less: 'as floor, sync' },
  'headgate, await consume': {
    windows: 4,
    waits: true,
    make: (settings) => headgate(settings, (limiter) => (account) => limiter.consume({ account, route: ROUTE })),
  },
  'rate-limiter-flexible': {
    windows: 1,
    waits: true,
    less: 'one window; charges rejected requests; one timer per key; no memory bound',
    make: (settings) => flexible(settings, 1),
  },
  'rate-limiter-flexible, union of two': {
    windows: 2,
    waits: true,
    less: 'two separate windows: a request that one rejects is charged by the other; no memory bound',
    make: (settings) => flexible(settings, 2),
  },
  'rate-limiter-flexible, union of four': {
    windows: 4,
    waits: true,
    less: 'four separate windows: a request that one rejects is charged by the others; no memory bound',
    make: (settings) => flexible(settings, 4),
  },
  'express-rate-limit': {
    windows: 1,
    waits: true,
    less: ONLY_COUNTS,
    make: (settings) => countingStore(requirePeer('express-rate-limit').MemoryStore, settings),
  },
  '@nestjs/throttler': {
    windows: 1,
    waits: true,
    less: 'one window; stores the time of every hit, so a check costs more with more hits (here at most 60 per key); no memory bound',
    make: throttler,
  },
  '@upstash/ratelimit': {
    windows: 0,
    waits: true,
    onlyRejects: true,
    less: 'no window: in memory it only knows which accounts Redis has rejected before',
    make({ accounts }) {
      const { Ratelimit } = requirePeer('@upstash/ratelimit');
      const ends = Date.now() + 86_400_000;
      const ephemeralCache = new Map(accounts.map((account) => [`@upstash/ratelimit:${account}`, ends]));
      const limiter = new Ratelimit({ redis: {}, limiter: Ratelimit.fixedWindow(1, '1 d'), ephemeralCache });
      return {
        ask: (account) => limiter.limit(account),
        isAccepted: ({ success }) => success,
        size: () => ephemeralCache.size,
      };
    },
  },
};

export const PEERS = [
  'rate-limiter-flexible',
  'limiter',
  'express-rate-limit',
  '@fastify/rate-limit',
  'hono-rate-limiter',
  '@nestjs/throttler',
  '@upstash/ratelimit',
];

/** A bare Map whose records have four windows: get, compare, add. It is plain code, not the fastest possible code. */
function floor(wrap = (ask) => ask) {
  return {
    windows: 4,
    make({ max, windowsMs }) {
      const records = new Map();
      const ask = (account) => {
        const time = now();
        let windows = records.get(account);
        if (windows === undefined) {
          windows = windowsMs.map(() => ({ start: time, count: 0 }));
          records.set(account, windows);
        }
        for (let i = 0; i < 4; i++) {
          const window = windows[i];
          if (time >= window.start + windowsMs[i]) {
            window.start = time;
            window.count = 0;
          }
          if (window.count + 1 > max) return false;
        }
        for (let i = 0; i < 4; i++) windows[i].count++;
        return true;
      };
      return { ask: wrap(ask), isAccepted: Boolean, size: () => records.size };
    },
  };
}

function headgate({ accounts, max, windowsMs, clock }, askWith) {
  const store = createMemoryStore({ maxKeys: Math.max(accounts.length, 5_000), ...(clock && { clock }) });
  const [first, second, third, fourth] = windowsMs.map((ms) => `${max}/${ms}ms`);
  const limiter = createLimiter({
    store,
    limits: { allMethods: [third, fourth], routes: { [ROUTE]: [first, second] } },
  });
  return { ask: askWith(limiter), isAccepted: ({ accepted }) => accepted, size: () => store.stats().keys };
}

function flexible({ max, windowsMs }, windows) {
  const { RateLimiterMemory, RateLimiterUnion } = requirePeer('rate-limiter-flexible');
  const limiters = windowsMs
    .slice(0, windows)
    .map((ms, i) => new RateLimiterMemory({ points: max, duration: ms / 1_000, keyPrefix: `limit${i}` }));
  const limiter = windows === 1 ? limiters[0] : new RateLimiterUnion(...limiters);
  return {
    ask: (account) => limiter.consume(account),
    isAccepted: () => true,
    size: () => limiters[0]._memoryStorage._storage.size,
  };
}

/** express-rate-limit and hono-rate-limiter have the same kind of store. */
function countingStore(MemoryStore, { max, windowsMs }) {
  const store = new MemoryStore();
  store.init({ windowMs: windowsMs[0] });
  return {
    ask: (account) => store.increment(account),
    isAccepted: ({ totalHits }) => totalHits <= max,
    size: () => store.current.size + store.previous.size,
  };
}

const MAX_HITS = 60;

function throttler({ accounts, max, windowsMs: [windowMs] }) {
  const { ThrottlerStorageService } = requirePeer('@nestjs/throttler');
  const store = new ThrottlerStorageService();
  store.sweepIntervalMs = Math.min(store.sweepIntervalMs, windowMs);
  let calls = 0;
  const ask = (account) => {
    // Empties the store. Otherwise the benchmark would measure more hits per key than a real window has.
    if (max > 1 && ++calls % (MAX_HITS * accounts.length) === 0) store.onApplicationShutdown();
    return store.increment(account, windowMs, max, windowMs, 'default');
  };
  return { ask, isAccepted: ({ isBlocked }) => !isBlocked, size: () => store.storage.size };
}
