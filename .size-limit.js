import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { buildSync } from 'esbuild';

/*
 * What an application bundles of dist/: minified, in bytes of gzip. A limit that is a target says so. Every other limit is the size at the
 * last look and about 5 % more: raise it knowingly. Peers and Node's modules are not counted; lru-cache is.
 */

const { exports, peerDependencies } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'));
const PEERS = Object.keys(peerDependencies);
const FOR_NODE = { platform: 'node', format: 'esm', target: 'node20' };
const MOST_OF_AN_ADAPTER = 3_000;

/** Everything of each subpath. */
const WHOLE = {
  '.': 48_200,
  './limits': 10_800,
  './gate': 500,
  './idempotency': 300,
  './waiting': 7_200,
  './stores': 4_500,
  './recommended': 300,
  './shared-limits': 15_300,
  './shadow': 14_200,
  './memory': 11_200,
  './file': 4_600,
  './redis': 43_600,
  './postgres': 57_500,
  './http': 12_300,
  './node': 59_600,
  './express': 59_800,
  './fastify': 60_100,
  './koa': 59_800,
  './nest': 58_500,
  './fetch': 59_100,
  './hono': 58_400,
  './h3': 58_200,
  './elysia': 58_600,
  './client': 2_600,
  './client-ip': 3_600,
  './otel': 3_400,
  './internal': 53_600,
  './testing': 17_000,
};

/** What a server bundles to mount a gate, limits by address included; the bridge under the adapter, `./node` over Node's requests or `./fetch` over the web's. */
const ADAPTERS = {
  './node': { mounts: 'headgate', limit: 47_100 },
  './express': { mounts: 'headgate', bridge: './node', limit: 47_100 },
  './fastify': { mounts: 'headgate', bridge: './node', limit: 49_100 },
  './koa': { mounts: 'headgate', bridge: './node', limit: 47_100 },
  './nest': { mounts: 'Headgate, HeadgateModule', bridge: './node', limit: 48_200 },
  './fetch': { mounts: 'withHeadgate', limit: 47_100 },
  './hono': { mounts: 'headgate', bridge: './fetch', limit: 46_200 },
  './h3': { mounts: 'headgate', bridge: './fetch', limit: 46_100 },
  './elysia': { mounts: 'headgate', bridge: './fetch', limit: 46_600 },
};

const nameOf = (subpath) => subpath.replace('.', 'headgate');
const some = (subpath, names) => `export { ${names} } from '${exports[subpath].import.default}';`;
const everything = (...subpaths) =>
  subpaths.map((subpath, i) => `export * as all${i} from '${exports[subpath].import.default}';`).join('');
const stdin = (contents) => ({ contents, resolveDir: import.meta.dirname });

function bytesOf(contents) {
  const [bundle] = buildSync({
    ...FOR_NODE,
    stdin: stdin(contents),
    bundle: true,
    minify: true,
    write: false,
    logLevel: 'error',
    external: PEERS,
  }).outputFiles;
  return gzipSync(bundle.contents, { level: 9 }).length;
}

const row = (name, contents, limit) => ({
  name,
  path: 'dist/index.js',
  gzip: true,
  limit: `${limit} B`,
  modifyEsbuildConfig: ({ entryPoints: _, ...config }) => ({
    ...config,
    ...FOR_NODE,
    stdin: stdin(contents),
    logLevel: 'error',
  }),
});

const limiter = some('.', 'createLimiter');
const memory = some('./memory', 'createMemoryStore');
const gate = some('.', 'createGate');

export default [
  row('createLimiter, with its default store (target: 6 kB)', limiter, 24_800),
  row('createLimiter, createMemoryStore', limiter + memory, 24_800),
  row('createJobWorker', some('./waiting', 'createJobWorker'), 7_100),
  row('createGate', gate, 17_900),
  ...Object.entries(ADAPTERS).map(([subpath, { mounts, limit }]) =>
    row(`createGate, { ${mounts} } of ${nameOf(subpath)}`, gate + some(subpath, mounts), limit),
  ),
  // A target: everything of an adapter, less what it shares with the gate, `headgate/http` and the other adapters of its bridge.
  ...Object.entries(ADAPTERS)
    .filter(([, { bridge }]) => bridge !== undefined)
    .map(([subpath, { bridge }]) => {
      const shared = ['.', './http', bridge];
      const bytes = bytesOf(everything(...shared));
      const name = `${nameOf(subpath)}, beyond the ${bytes} B of ${shared.map(nameOf).join(', ')}`;
      return row(name, everything(...shared, subpath), bytes + MOST_OF_AN_ADAPTER);
    }),
  ...Object.entries(WHOLE).map(([subpath, limit]) => row(nameOf(subpath), everything(subpath), limit)),
];
