import { isBuiltin } from 'node:module';
import { join, relative, resolve } from 'node:path';
import { build } from 'esbuild';

const HERE = import.meta.dirname;
const ROOT = resolve(HERE, '../..');

/** A worker has no files to import: it comes as one, made as its users' tools make theirs. */
const AS_WORKER = {
  platform: 'neutral',
  conditions: ['workerd', 'worker', 'browser'],
  mainFields: ['browser', 'module', 'main'],
  external: ['cloudflare:*', 'node:net'],
};
const AS_FILES = { platform: 'node', packages: 'external' };

const IN_PROCESS = `const report = await runCases(GAPS);
console.log('\\n@@report ' + JSON.stringify(report));
process.exit(0);`;
/** Bun sends a request on a connection that its server has just closed, and does not try again. */
const ONCE_PER_CONNECTION = 'const send = fetch; globalThis.fetch = (request) => send(request, { keepalive: false });';
const IN_WORKER = `import { answer } from './servers/workerd.ts';
let isRunning = false;
export default {
  async fetch(request) {
    if (isRunning) return answer(request);
    isRunning = true;
    return Response.json(await runCases(GAPS));
  },
};`;

/**
 * Writes a suite as one file that runs in runtimes of a kind. What it imports of `src` comes from the package that lies in `folder`.
 * @returns the file
 */
export async function bundleSuite(suite, { kind, gaps, folder }) {
  const outfile = join(folder, `${kind}-${suite.file.replace(/\W+/g, '-')}.mjs`);
  const isWorker = kind === 'workerd';
  await build({
    stdin: {
      contents: `import './${suite.file}';
import { runCases } from './runner.ts';
const GAPS = ${JSON.stringify(gaps)};
${kind === 'bun' ? ONCE_PER_CONNECTION : ''}
${isWorker ? IN_WORKER : IN_PROCESS}`,
      resolveDir: HERE,
      loader: 'ts',
    },
    outfile,
    bundle: true,
    format: 'esm',
    logLevel: 'error',
    plugins: [standIns(kind, folder)],
    ...(isWorker ? AS_WORKER : AS_FILES),
  });
  return outfile;
}

/** The package in place of its sources, our runner in place of vitest, the runtime's own server in place of Node's. */
function standIns(kind, folder) {
  return {
    name: 'stand-ins',
    setup(build) {
      build.onResolve({ filter: /^vitest$/ }, () => ({ path: join(HERE, 'runner.ts') }));
      // The package's own manifest says that nothing has side effects; a test is nothing else.
      build.onResolve({ filter: /\.test\.ts$/ }, ({ path, resolveDir }) => ({
        path: resolve(resolveDir, path),
        sideEffects: true,
      }));
      build.onResolve({ filter: /\/listen-web\.ts$/ }, () =>
        kind === 'node' ? undefined : { path: join(HERE, `servers/${kind}.ts`) },
      );
      build.onResolve({ filter: /\/src\// }, ({ path, resolveDir }) => {
        const name = publicName(relative(join(ROOT, 'src'), resolve(resolveDir, path)));
        return kind === 'workerd'
          ? build.resolve(name, { kind: 'import-statement', resolveDir: folder })
          : { path: name, external: true };
      });
      // A static import of Node's would stop the worker.
      build.onResolve({ filter: /^node:|^[a-z_]+$/ }, ({ path }) =>
        kind === 'workerd' && isBuiltin(path) ? { path, external: true } : undefined,
      );
    },
  };
}

/** The entry of the package that has the names of a file in `src`. */
function publicName(file) {
  const [room, name = ''] = file.replace(/\.ts$/, '').split('/');
  if (room === 'index') return 'headgate';
  if (room === 'adapters' || room === 'stores') return `headgate/${name}`;
  return `headgate/${room}`;
}
