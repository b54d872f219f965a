// Builds the console into text: the page, its scripts, its style and its icon. The gateway process has them inside.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SOURCE = join(ROOT, 'src/console');

/** The module that the gateway imports. */
export const CONSOLE_MODULE = '#console';

/**
 * @typedef {object} Asset
 * @property {string} path relative to the page
 * @property {string} type of the media
 * @property {string} text
 */

/** @returns {{ assets: Asset[], packages: string[] }} the page is the first one; the packages are those inside the scripts */
export function buildConsole() {
  const { outputFiles, metafile } = buildSync({
    entryPoints: { console: join(SOURCE, 'main.tsx') },
    absWorkingDir: ROOT,
    outdir: 'assets',
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    minify: true,
    write: false,
    metafile: true,
    format: 'esm',
    target: ['chrome110', 'firefox110', 'safari16'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
  });
  const scripts = outputFiles.map(({ path, text }) => asset(basename(path), text));
  const icon = readFileSync(join(SOURCE, 'icon.svg'), 'utf8');
  const hash = createHash('sha256').update(icon).digest('hex').slice(0, 8).toUpperCase();
  const assets = [...scripts, asset(`icon-${hash}.svg`, icon)];
  const pathOf = (pattern) => assets.find(({ path }) => pattern.test(path)).path;
  const page = readFileSync(join(SOURCE, 'index.html'), 'utf8')
    .replace('main.tsx', pathOf(/^assets\/console-.*\.js$/))
    .replace('style.css', pathOf(/\.css$/))
    .replace('icon.svg', pathOf(/\.svg$/));
  const packages = Object.keys(metafile.inputs).flatMap(
    (path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? [],
  );
  return { assets: [{ path: '', type: TYPES.html, text: page }, ...assets], packages: [...new Set(packages)] };
}

const TYPES = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};

function asset(name, text) {
  return { path: `assets/${name}`, type: TYPES[name.split('.').at(-1)], text };
}

/** What `#console` is: a module with the assets. */
export function consoleModule() {
  return `export const assets = ${JSON.stringify(buildConsole().assets)};`;
}

/** Lets esbuild, and so tsup, import the console. */
export const consolePlugin = {
  name: 'console',
  setup(build) {
    build.onResolve({ filter: new RegExp(`^${CONSOLE_MODULE}$`) }, ({ path }) => ({ path, namespace: 'console' }));
    build.onLoad({ filter: /.*/, namespace: 'console' }, () => ({ contents: consoleModule(), loader: 'js' }));
  },
};
