import { chooseWorkloads } from 'headgate-bench/rounds';

export const BODIES = { small: 300, large: 10_240 };

/** Every cell of the benchmark: kind of call, body, concurrency, and who takes part on which client. */
function allCells(against) {
  const on = (client, ...candidates) => candidates.map((candidate) => ({ client, candidate }));
  const other = against ? ['against'] : [];
  const memory = on(
    'memory',
    'floor',
    'headgate',
    ...other,
    'headgate, parsed',
    'node-idempotency',
    'powertools',
    'express-idempotency',
  );
  const redis = [
    ...on('ioredis', 'floor', 'headgate', ...other),
    ...on('node-redis', 'floor', 'headgate', ...other, 'node-idempotency', 'powertools'),
    ...on('node-redis 4', 'floor', 'node-idempotency'),
  ];
  const cell = (place, kind, body, concurrency, contestants) => {
    const name = place === 'memory' ? `memory ${kind} ${body}` : `redis ${kind} ${concurrency}`;
    return { name, place, kind, body, concurrency, contestants };
  };
  return [
    ...['first', 'replay'].flatMap((kind) => Object.keys(BODIES).map((body) => cell('memory', kind, body, 1, memory))),
    // With one call in flight no calls share a round trip, so the round trips per call can be counted.
    ...[1, 64].flatMap((concurrency) => [
      cell('redis', 'first', 'small', concurrency, [...redis, ...on('ioredis', 'headgate, explicit')]),
      cell('redis', 'replay', 'small', concurrency, redis),
    ]),
  ];
}

export function idempotencyWorkloads({ against, only }) {
  return chooseWorkloads(allCells(against), only);
}
