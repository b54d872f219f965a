/**
 * Which suites run in which runtimes. A suite is a vitest file, or a file of `suites/`, which uses only what every
 * runtime has.
 */

const NODE_SERVERS = ['node', 'bun', 'deno'];
const EVERYWHERE = [...NODE_SERVERS, 'workerd'];
const IS_NODES = 'it needs a Node server';
const IS_HTTP2 = "it uses Node's HTTP/2 client, which ends the process in Deno, and which workerd does not have";

export const SUITES = [
  { name: 'direct calls', file: 'suites/direct.ts', kinds: EVERYWHERE },
  {
    name: 'limits by address',
    file: 'suites/address.ts',
    kinds: ['bun', 'deno'],
    why: 'they are tested in Node itself, and a worker has no address',
  },
  { name: 'memory stores', file: 'suites/stores.ts', kinds: EVERYWHERE },
  adapter('fetch', 'fetch', EVERYWHERE),
  adapter('hono', 'hono', EVERYWHERE),
  {
    name: 'h3',
    file: 'suites/h3.ts',
    kinds: ['bun', 'deno', 'workerd'],
    why: 'in Node it needs a Node server',
  },
  adapter('elysia', 'elysia', NODE_SERVERS, 'it compiles its routes from strings, which workerd does not allow'),
  adapter('h3 on node:http', 'h3', NODE_SERVERS, IS_NODES),
  adapter('node:http, connect', 'node/suite', NODE_SERVERS, IS_NODES),
  adapter('express 4, 5', 'express', NODE_SERVERS, IS_NODES),
  adapter('fastify', 'fastify', NODE_SERVERS, IS_NODES),
  adapter('koa', 'koa', NODE_SERVERS, IS_NODES),
  adapter('fastify over HTTP/2', 'fastify-http2', ['node', 'bun'], IS_HTTP2),
  adapter('koa over HTTP/2', 'koa-http2', ['node', 'bun'], IS_HTTP2),
  adapter('nest', 'nest', NODE_SERVERS, IS_NODES),
  adapter('nest on fastify over HTTP/2', 'nest-http2', ['node', 'bun'], IS_HTTP2),
];

/**
 * Cases that fail in a runtime, by kind and suite, each with the reason. They are run too: a gap that passes is an
 * error.
 */
export const GAPS = {
  deno: {
    'h3 on node:http': {
      'I7: a response breaks off: its client sees that, and the request is not executed again':
        "h3 on Deno's node:http ends the response as if it were complete; h3 on Deno.serve does not",
    },
  },
};

/** @param why the reason to leave it out of the other runtimes */
function adapter(name, file, kinds, why) {
  return { name, file: `../adapters/${file}.test.ts`, kinds, why };
}
