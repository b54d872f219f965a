const ROOT = new URL('../../../', import.meta.url);

/** The folder of each house's benchmarks, and its topics: modules of these names in its folder `topics`. */
export const HOUSES = {
  library: {
    folder: new URL('bench/', ROOT),
    topics: [
      'memory',
      'bytes',
      'stall',
      'shadow',
      'bodies',
      'http',
      'redis',
      'leases',
      'fleet',
      'postgres',
      'encodings',
      'idempotency',
      'simulation',
    ],
  },
  gateway: {
    folder: new URL('apps/gateway/bench/', ROOT),
    topics: ['gateway', 'doors', 'scale-out', 'fairness'],
  },
  service: {
    folder: new URL('apps/communication-api/bench/', ROOT),
    topics: [
      'service-send',
      'service-smtp',
      'service-delivery',
      'service-memory',
      'service-start',
      'service-wizard',
      'service-dashboard',
    ],
  },
};

/** It starts from the results of redis, memory and the gateway's scale-out, so it runs after them. */
const LAST = 'simulation';

/** All topics, in the order of a run and of the page. */
export const TOPICS = [...Object.values(HOUSES).flatMap(({ topics }) => topics.filter((one) => one !== LAST)), LAST];

/** The folder of the benchmarks that a topic belongs to. */
export const folderOf = (topic) => Object.values(HOUSES).find(({ topics }) => topics.includes(topic)).folder;

export const loadTopic = (topic) => import(new URL(`topics/${topic}.mjs`, folderOf(topic)));
