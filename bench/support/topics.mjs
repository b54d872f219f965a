/**
 * The topics in the order of a run and of the page. Each is a module of this name in bench/topics: see bench/README.md.
 */
export const TOPICS = [
  'memory',
  'bytes',
  'stall',
  'shadow',
  'bodies',
  'http',
  'redis',
  'encodings',
  'idempotency',
  'gateway',
  'scale-out',
  'fairness',
  'service-send',
  'service-smtp',
  'service-delivery',
  'service-memory',
  'service-start',
  'service-wizard',
  'service-dashboard',
  'simulation',
];

export const loadTopic = (name) => import(`../topics/${name}.mjs`);
