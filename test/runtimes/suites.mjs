/** What runs where. A suite is a file of tests as vitest runs it, or one of `suites/`, which only use what every runtime has. */

const NODE_SERVERS = ['node', 'bun', 'deno'];
const EVERYWHERE = [...NODE_SERVERS, 'workerd'];
const IS_NODES = 'it is mounted on a server of Node';
const IS_HTTP2 = "it asks by Node's client of HTTP/2, which Deno ends the process of, and workerd does not have";

export const SUITES = [
  { name: 'direct calls', file: 'suites/direct.ts', kinds: EVERYWHERE },
  { name: 'memory stores', file: 'suites/stores.ts', kinds: EVERYWHERE },
  adapter('fetch', 'fetch', EVERYWHERE),
  adapter('hono', 'hono', EVERYWHERE),
  {
    name: 'h3',
    file: 'suites/h3.ts',
    kinds: ['bun', 'deno', 'workerd'],
    why: 'on Node it is mounted on a server of Node',
  },
  adapter('elysia', 'elysia', NODE_SERVERS, 'it compiles its routes from strings, which workerd does not allow'),
  adapter('h3 on node:http', 'h3', NODE_SERVERS, IS_NODES),
  adapter('node:http, connect', 'node-suite', NODE_SERVERS, IS_NODES),
  adapter('express 4, 5', 'express', NODE_SERVERS, IS_NODES),
  adapter('fastify', 'fastify', NODE_SERVERS, IS_NODES),
  adapter('koa', 'koa', NODE_SERVERS, IS_NODES),
  adapter('fastify over HTTP/2', 'fastify-http2', ['node', 'bun'], IS_HTTP2),
  adapter('koa over HTTP/2', 'koa-http2', ['node', 'bun'], IS_HTTP2),
  adapter('nest', 'nest', NODE_SERVERS, IS_NODES),
  adapter('nest on fastify over HTTP/2', 'nest-http2', ['node', 'bun'], IS_HTTP2),
];

/** Cases that do not hold in a runtime, by kind and suite, each with the reason. They are run all the same: one that holds after all is a fault. */
export const GAPS = {
  deno: {
    'h3 on node:http': {
      'I7: an answer that breaks off breaks off for its client, and is not executed again':
        "h3 ends it behind Deno's node:http as if it were whole; h3 on Deno.serve does not",
    },
  },
};

/** @param why it is left out elsewhere */
function adapter(name, file, kinds, why) {
  return { name, file: `../adapters/${file}.test.ts`, kinds, why };
}
