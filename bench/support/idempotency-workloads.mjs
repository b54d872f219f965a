import { nameOf } from './redis-workloads.mjs';

export const BODIES = { small: 300, large: 10_240 };

/** Every cell of the benchmark: which call, of what body, by whom, on which client. */
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
  ];
  const cell = (place, kind, body, concurrency, contestants) => ({ place, kind, body, concurrency, contestants });
  return [
    ...['first', 'replay'].flatMap((kind) => Object.keys(BODIES).map((body) => cell('memory', kind, body, 1, memory))),
    // One at a time nothing travels with anything else: there the round trips are counted.
    ...[1, 64].flatMap((concurrency) => [
      cell('redis', 'first', 'small', concurrency, [...redis, ...on('ioredis', 'headgate, explicit')]),
      cell('redis', 'replay', 'small', concurrency, redis),
    ]),
  ];
}

/** @param only words that a cell must have, each in one of its forms: `redis,replay,headgate|against`. A floor stays. */
export function idempotencyWorkloads({ against, only }) {
  const terms = only === '' ? [] : only.split(',').map((term) => term.split('|'));
  return allCells(against)
    .map(({ contestants, ...cell }) => {
      const fits = ({ client, candidate }) =>
        terms.every((forms) =>
          forms.some((form) => [...Object.values(cell), client, candidate].map(String).includes(form)),
        );
      const chosen = contestants.filter(fits);
      const isNeeded = (one) =>
        chosen.includes(one) || (one.candidate === 'floor' && chosen.some(({ client }) => client === one.client));
      return {
        name: cell.place === 'memory' ? `memory ${cell.kind} ${cell.body}` : `redis ${cell.kind} ${cell.concurrency}`,
        ...cell,
        contestants: contestants.filter(isNeeded),
      };
    })
    .filter(({ contestants }) => contestants.length > 0);
}

export { nameOf };
