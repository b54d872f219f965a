// The connections of `npm run bench -- --topic idempotency`, and the floor of each: SET NX and SET for a first call, one GET for a
// replay.

import { requireOf } from 'headgate-bench/peers';
import { Redis } from 'ioredis';
import { createClient } from 'redis';

const TTL_MS = 86_400_000;

export const CLIENTS = {
  memory: () => undefined,

  ioredis(port) {
    const client = new Redis({ port, host: '127.0.0.1' });
    return {
      client,
      floor: () =>
        floor({
          get: (key) => client.get(key),
          claim: (key, value) => client.set(key, value, 'PX', TTL_MS, 'NX'),
          keep: (key, value) => client.set(key, value, 'PX', TTL_MS),
        }),
    };
  },

  'node-redis': (port) => nodeRedis(createClient, port),

  /** The version that @node-idempotency's storage brings. */
  'node-redis 4': (port) => nodeRedis(requireOf('@node-idempotency/storage-adapter-redis', 'redis').createClient, port),
};

async function nodeRedis(create, port) {
  const client = create({ url: `redis://127.0.0.1:${port}` });
  await client.connect();
  return {
    client,
    floor: () =>
      floor({
        get: (key) => client.get(key),
        claim: (key, value) => client.set(key, value, { PX: TTL_MS, NX: true }),
        keep: (key, value) => client.set(key, value, { PX: TTL_MS }),
      }),
  };
}

/** It knows from its argument whether a call is a replay. Code that must find this out cannot use fewer commands. */
function floor({ get, claim, keep }) {
  return async (key, _body, operation, isReplay) => {
    if (isReplay) return JSON.parse(await get(key));
    if ((await claim(key, 'in progress')) === null) throw new Error('claimed already');
    const value = await operation();
    await keep(key, JSON.stringify(value));
    return value;
  };
}
