/**
 * Every subpath of the package and its source. The build (`tsup.config.ts`), the API reference (`typedoc.config.js`) and
 * `test/architecture.test.ts` read this list. `test/subpaths.test.ts` compares it with `exports` in package.json and with `.size-limit.js`.
 */
export const SUBPATHS = {
  '.': 'src/index.ts',
  './limits': 'src/limits/index.ts',
  './gate': 'src/gate/index.ts',
  './idempotency': 'src/idempotency/index.ts',
  './waiting': 'src/waiting/index.ts',
  './stores': 'src/stores.ts',
  './recommended': 'src/limits/recommended.ts',
  './shared-limits': 'src/shared-limits/index.ts',
  './shadow': 'src/shadow/shadow.ts',
  './memory': 'src/memory.ts',
  './file': 'src/file.ts',
  './redis': 'src/redis.ts',
  './postgres': 'src/postgres.ts',
  './http': 'src/http/index.ts',
  './node': 'src/adapters/node.ts',
  './express': 'src/adapters/express.ts',
  './fastify': 'src/adapters/fastify.ts',
  './koa': 'src/adapters/koa.ts',
  './nest': 'src/adapters/nest.ts',
  './fetch': 'src/adapters/fetch.ts',
  './hono': 'src/adapters/hono.ts',
  './h3': 'src/adapters/h3.ts',
  './elysia': 'src/adapters/elysia.ts',
  './client-ip': 'src/address/client-ip.ts',
  './client': 'src/client/fetch-with-retry.ts',
  './otel': 'src/otel/instrument.ts',
  './testing': 'src/testing/index.ts',
  './internal': 'src/internal.ts',
};

/** `./express` is built as `dist/express.js`, `.` as `dist/index.js`. */
export const builtName = (subpath) => (subpath === '.' ? 'index' : subpath.slice('./'.length));
