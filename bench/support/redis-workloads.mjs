import { chooseWorkloads } from 'headgate-bench/rounds';

const CONCURRENCIES = [1, 16, 64, 256];

/** Every cell of the benchmark: keys, concurrency, and who takes part on which client. */
function allCells(against) {
  const headgate = against ? ['headgate', 'against'] : ['headgate'];
  const on = (client, ...candidates) => candidates.map((candidate) => ({ client, candidate }));
  const everywhere = [...on('auto-pipelined', 'floor', ...headgate), ...on('node-redis', 'floor', ...headgate)];
  const peers = ['rlf', 'rate-limit-redis', 'async-ratelimiter'];
  const spread = [...on('ioredis', 'floor', ...headgate, ...peers, 'rlf union'), ...everywhere];
  const hot = [...on('ioredis', 'floor', ...headgate, ...peers), ...everywhere];
  const denied = on('ioredis', 'floor', ...headgate, ...peers);
  const few = on('ioredis', 'floor', ...headgate, 'rlf');
  const cell = (keys, concurrency, contestants) => ({ name: `${keys} ${concurrency}`, keys, concurrency, contestants });
  return [
    ...CONCURRENCIES.map((concurrency) => cell('spread', concurrency, spread)),
    ...CONCURRENCIES.map((concurrency) => cell('hot', concurrency, concurrency === 256 ? hot : few)),
    ...CONCURRENCIES.map((concurrency) => cell('denied', concurrency, concurrency === 256 ? denied : few)),
  ];
}

export function redisWorkloads({ against, only }) {
  return chooseWorkloads(allCells(against), only);
}
