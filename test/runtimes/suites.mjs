/** What runs where. A suite is a file of tests as vitest runs it, or one of `suites/`, which only use what every runtime has. */

const EVERYWHERE = ['node', 'bun', 'deno', 'workerd'];
const NODE_SERVERS = ['node', 'bun', 'deno'];

export const SUITES = [
  { name: 'direct calls', file: 'suites/direct.ts', kinds: EVERYWHERE },
  { name: 'memory stores', file: 'suites/stores.ts', kinds: EVERYWHERE },
  ...['fetch', 'hono', 'elysia'].map((name) => adapter(name, EVERYWHERE)),
  ...['h3', 'node-suite', 'express', 'fastify', 'koa', 'nest'].map((name) => adapter(name, NODE_SERVERS)),
];

/** Why a runtime leaves a suite out that is not for its kind. */
export const NO_NODE_SERVER = 'workerd: what is mounted on a server of Node is not for it';

/** Cases that do not hold in a runtime, by kind and suite, each with the reason. They are run all the same: one that holds after all is a fault. */
export const GAPS = {};

function adapter(name, kinds) {
  return { name: name.replace('node-suite', 'node, connect'), file: `../adapters/${name}.test.ts`, kinds };
}
