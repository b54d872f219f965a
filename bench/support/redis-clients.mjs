// The clients that are measured, and the floor of each: the least that one decision by a script can cost.
import { Redis } from 'ioredis';
import { createClient } from 'redis';

const FLOOR = 'return 1';

function ioredis(port, options) {
  const client = new Redis({ port, host: '127.0.0.1', ...options });
  return {
    client,
    async floor() {
      const sha1 = await client.script('LOAD', FLOOR);
      return (key) => client.evalsha(sha1, 1, key);
    },
  };
}

export const CLIENTS = {
  ioredis: (port) => ioredis(port, {}),
  'auto-pipelined': (port) => ioredis(port, { enableAutoPipelining: true }),
  async 'node-redis'(port) {
    const client = await createClient({ url: `redis://127.0.0.1:${port}` }).connect();
    return {
      client,
      async floor() {
        const sha1 = await client.scriptLoad(FLOOR);
        return (key) => client.evalSha(sha1, { keys: [key], arguments: [] });
      },
    };
  },
};
