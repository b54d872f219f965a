// One check of a key in memory, by each package as its own documentation says. The memory, bytes and stall topics measure these.
import { createLimiter } from 'headgate';
import { createMemoryStore } from 'headgate/memory';
import { requirePeer } from './peers.mjs';

const ROUTE = 'POST /api/v1/emails';
const { timeOrigin } = performance;
/** As headgate's own clock takes it. */
const now = () => Math.floor(timeOrigin + performance.now());

/**
 * By name: `windows` that a check looks at, `waits` whether it is awaited, `less` where it does less than headgate, and
 * `make({ accounts, max, windowsMs, clock })`, which gives `ask(account)`, `isAccepted(answer)` and `size()`, the keys that it holds.
 * Where `ask` rejects with what is no Error, that is a refusal. Peers have the first of the four windows.
 */
export const CANDIDATES = {
  'floor, sync': { ...floor(), less: 'no decision but yes or no, no bound, nothing leaves, no choice of route' },
  'headgate, consumeSync': {
    windows: 4,
    make: (settings) => headgate(settings, (limiter) => (account) => limiter.consumeSync({ account, route: ROUTE })),
  },
  limiter: {
    windows: 1,
    less: 'one bucket, in a Map of one’s own; no bound, nothing leaves',
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
    less: 'one window; charges refused requests; no bound; counts, the middleware compares',
    make: (settings) => counting(requirePeer('hono-rate-limiter').MemoryStore, settings),
  },
  '@fastify/rate-limit': {
    windows: 1,
    less: 'one window; charges refused requests; its bound drops live counters',
    make({ accounts, max, windowsMs }) {
      const LocalStore = requirePeer('@fastify/rate-limit/store/LocalStore');
      const store = new LocalStore(false, false, Math.max(accounts.length, 5_000));
      let answer;
      const keep = (_, result) => {
        answer = result;
      };
      const ask = (account) => {
        store.incr(account, keep, windowsMs[0], max);
        return answer;
      };
      return { ask, isAccepted: ({ current }) => current <= max, size: () => store.lru.size };
    },
  },
  'floor, awaited': { ...floor((ask) => async (account) => ask(account)), waits: true, less: 'as above' },
  'headgate, await consume': {
    windows: 4,
    waits: true,
    make: (settings) => headgate(settings, (limiter) => (account) => limiter.consume({ account, route: ROUTE })),
  },
  'rate-limiter-flexible': {
    windows: 1,
    waits: true,
    less: 'one window; charges refused requests; a timer for each key; no bound',
    make: (settings) => flexible(settings, 1),
  },
  'rate-limiter-flexible, union of two': {
    windows: 2,
    waits: true,
    less: 'two windows apart: refused by one, charged by the other; no bound',
    make: (settings) => flexible(settings, 2),
  },
  'rate-limiter-flexible, union of four': {
    windows: 4,
    waits: true,
    less: 'four windows apart: refused by one, charged by the others; no bound',
    make: (settings) => flexible(settings, 4),
  },
  'express-rate-limit': {
    windows: 1,
    waits: true,
    less: 'one window; charges refused requests; no bound; counts, the middleware compares',
    make: (settings) => counting(requirePeer('express-rate-limit').MemoryStore, settings),
  },
  '@nestjs/throttler': {
    windows: 1,
    waits: true,
    less: 'one window; keeps the time of every hit, so that a check costs as much as there were hits (here at most 60 a key); no bound',
    make: throttler,
  },
  '@upstash/ratelimit': {
    windows: 0,
    waits: true,
    isRefusingOnly: true,
    less: 'no window: in memory it only knows whom Redis has refused before',
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

/** A bare Map whose record has four windows: get, compare, add. As one would write it; not the least that can be had. */
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

function headgate({ accounts, max, windowsMs, clock }, asking) {
  const store = createMemoryStore({ maxKeys: Math.max(accounts.length, 5_000), ...(clock && { clock }) });
  const [first, second, third, fourth] = windowsMs.map((ms) => `${max}/${ms}ms`);
  const limiter = createLimiter({
    store,
    limits: { allMethods: [third, fourth], routes: { [ROUTE]: [first, second] } },
  });
  return { ask: asking(limiter), isAccepted: ({ accepted }) => accepted, size: () => store.stats().keys };
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
function counting(MemoryStore, { max, windowsMs }) {
  const store = new MemoryStore();
  store.init({ windowMs: windowsMs[0] });
  return {
    ask: (account) => store.increment(account),
    isAccepted: ({ totalHits }) => totalHits <= max,
    size: () => store.current.size + store.previous.size,
  };
}

const HITS = 60;

function throttler({ accounts, max, windowsMs: [windowMs] }) {
  const { ThrottlerStorageService } = requirePeer('@nestjs/throttler');
  const store = new ThrottlerStorageService();
  store.sweepIntervalMs = Math.min(store.sweepIntervalMs, windowMs);
  let calls = 0;
  const ask = (account) => {
    // Empties it: as many hits as nobody has in a window would be measured otherwise.
    if (max > 1 && ++calls % (HITS * accounts.length) === 0) store.onApplicationShutdown();
    return store.increment(account, windowMs, max, windowMs, 'default');
  };
  return { ask, isAccepted: ({ isBlocked }) => !isBlocked, size: () => store.storage.size };
}
