import { isBuiltin } from 'node:module';
import { join, relative, resolve } from 'node:path';
import { build } from 'esbuild';

const HERE = import.meta.dirname;
const ROOT = resolve(HERE, '../..');

/** A worker cannot import files, so it is bundled into one file, as the tools of its users do. */
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
/** Bun may send a request on a connection that the server has just closed, and does not retry it. */
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
 * Bundles a suite into one file for a kind of runtime. Its imports from `src` are replaced by imports from the package
 * in `folder`.
 * @returns the path of the file
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
    plugins: [replacements(kind, folder)],
    ...(isWorker ? AS_WORKER : AS_FILES),
  });
  return outfile;
}

/** Replaces the sources by the package, vitest by `runner.ts`, and Node's server by the runtime's own. */
function replacements(kind, folder) {
  return {
    name: 'replacements',
    setup(build) {
      build.onResolve({ filter: /^vitest$/ }, () => ({ path: join(HERE, 'runner.ts') }));
      // The package's manifest says that no file has side effects, but a test consists of them.
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
      // A static import of a Node module would stop the worker.
      build.onResolve({ filter: /^node:|^[a-z_]+$/ }, ({ path }) =>
        kind === 'workerd' && isBuiltin(path) ? { path, external: true } : undefined,
      );
    },
  };
}

/** The entry of the package that exports the names of a file in `src`. */
function publicName(file) {
  const [room, name = ''] = file.replace(/\.ts$/, '').split('/');
  if (room === 'index') return 'headgate';
  if (room === 'adapters' || room === 'stores') return `headgate/${name}`;
  return `headgate/${room}`;
}
