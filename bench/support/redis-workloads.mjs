const CONCURRENCIES = [1, 16, 64, 256];

/** Every cell of the benchmark: what is decided, by whom, on which client. */
function allCells(against) {
  const headgate = against ? ['headgate', 'against'] : ['headgate'];
  const on = (client, ...candidates) => candidates.map((candidate) => ({ client, candidate }));
  const everywhere = [...on('auto-pipelined', 'floor', ...headgate), ...on('node-redis', 'floor', ...headgate)];
  const spread = [...on('ioredis', 'floor', ...headgate, 'rlf', 'rlf union'), ...everywhere];
  const hot = [...on('ioredis', 'floor', ...headgate, 'rlf'), ...everywhere];
  const denied = on('ioredis', 'floor', ...headgate, 'rlf');
  return [
    ...CONCURRENCIES.map((concurrency) => ({ keys: 'spread', concurrency, contestants: spread })),
    { keys: 'hot', concurrency: 256, contestants: hot },
    { keys: 'denied', concurrency: 256, contestants: denied },
  ];
}

/**
 * @param only words that a cell must have, each in one of its forms: `spread,64|256,headgate`. A floor stays for whoever is measured on its client.
 */
export function redisWorkloads({ against, only }) {
  const terms = only === '' ? [] : only.split(',').map((term) => term.split('|'));
  return allCells(against)
    .map(({ keys, concurrency, contestants }) => {
      const chosen = contestants.filter(({ client, candidate }) =>
        terms.every((forms) => forms.some((form) => [keys, String(concurrency), client, candidate].includes(form))),
      );
      const needed = contestants.filter(
        (one) =>
          chosen.includes(one) || (one.candidate === 'floor' && chosen.some(({ client }) => client === one.client)),
      );
      return { name: `${keys} ${concurrency}`, keys, concurrency, contestants: needed };
    })
    .filter(({ contestants }) => contestants.length > 0);
}

export const nameOf = ({ client, candidate }) => `${candidate} on ${client}`;
