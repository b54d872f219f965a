/**
 * Every subpath of the package and its source. The build (`tsup.config.ts`), the API reference (`typedoc.config.js`) and
 * `test/architecture.test.ts` read this list. `test/subpaths.test.ts` compares it with `exports` in package.json and with `.size-limit.js`.
 */
export const SUBPATHS = {
  '.': 'src/index.ts',
  './stores': 'src/stores/index.ts',
  './recommended': 'src/limits/recommended.ts',
  './shared-limits': 'src/limits/shared/index.ts',
  './memory': 'src/stores/memory/index.ts',
  './file': 'src/stores/file/adjustments.ts',
  './redis': 'src/stores/redis/index.ts',
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
  './client-ip': 'src/client-ip.ts',
  './client': 'src/client/fetch-with-retry.ts',
  './simulate': 'src/simulate/index.ts',
  './otel': 'src/otel/instrument.ts',
  './testing': 'src/testing/index.ts',
};

/** `./express` is built as `dist/express.js`, `.` as `dist/index.js`. */
export const builtName = (subpath) => (subpath === '.' ? 'index' : subpath.slice('./'.length));
