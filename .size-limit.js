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
  '.': 36_800,
  './limits': 8_700,
  './gate': 500,
  './idempotency': 300,
  './waiting': 4_000,
  './stores': 3_700,
  './recommended': 300,
  './shared-limits': 12_700,
  './shadow': 9_000,
  './memory': 9_900,
  './file': 4_400,
  './redis': 42_600,
  './postgres': 51_600,
  './http': 11_900,
  './node': 47_400,
  './express': 47_600,
  './fastify': 48_000,
  './koa': 47_600,
  './nest': 46_500,
  './fetch': 46_700,
  './hono': 46_000,
  './h3': 45_800,
  './elysia': 46_200,
  './client': 2_600,
  './client-ip': 3_600,
  './otel': 3_100,
  './internal': 41_300,
  './testing': 14_200,
};

/** What a server bundles to mount a gate, limits by address included; the bridge under the adapter, `./node` over Node's requests or `./fetch` over the web's. */
const ADAPTERS = {
  './node': { mounts: 'headgate', limit: 35_300 },
  './express': { mounts: 'headgate', bridge: './node', limit: 35_300 },
  './fastify': { mounts: 'headgate', bridge: './node', limit: 37_200 },
  './koa': { mounts: 'headgate', bridge: './node', limit: 35_200 },
  './nest': { mounts: 'Headgate, HeadgateModule', bridge: './node', limit: 36_300 },
  './fetch': { mounts: 'withHeadgate', limit: 35_000 },
  './hono': { mounts: 'headgate', bridge: './fetch', limit: 34_200 },
  './h3': { mounts: 'headgate', bridge: './fetch', limit: 34_100 },
  './elysia': { mounts: 'headgate', bridge: './fetch', limit: 34_500 },
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
  row('createLimiter, with its default store (target: 6 kB)', limiter, 15_700),
  row('createLimiter, createMemoryStore', limiter + memory, 15_800),
  row('createJobWorker', some('./waiting', 'createJobWorker'), 3_800),
  row('createGate', gate, 14_400),
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
