import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { build } from 'esbuild';
import { type OutputChunk, rollup } from 'rollup';
import { beforeAll, describe, expect, it } from 'vitest';
import { manifest, nameOf, ROOT, subpaths } from './support/package.ts';

const EXTERNAL = [...Object.keys(manifest.peerDependencies), ...Object.keys(manifest.dependencies)];

/** What remains of a program after esbuild has bundled and minified it. */
async function bundleOf(contents: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: ROOT },
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    platform: 'node',
    external: EXTERNAL,
    logLevel: 'error',
  });
  return outputFiles[0]?.text ?? '';
}

/**
 * What remains of each file if it is imported only for its effects, and if rollup ignores the promise of package.json that it
 * has none. In one run, because most of the time goes into parsing the chunks that they share.
 */
async function effectsOf(files: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const prefix = 'only for its effects: ';
  const bundle = await rollup({
    input: files.map((file) => `${prefix}${file}`),
    // It warns of an empty chunk, which is the goal.
    onwarn: () => undefined,
    external: (id) => !/^[./]/.test(id) && !id.startsWith(prefix),
    treeshake: { moduleSideEffects: (_, isExternal) => !isExternal },
    plugins: [
      {
        name: 'only-for-its-effects',
        resolveId: (id) => (id.startsWith(prefix) ? id : null),
        load: (id) => (id.startsWith(prefix) ? `import ${JSON.stringify(id.slice(prefix.length))};` : null),
      },
    ],
  });
  const { output } = await bundle.generate({});
  const entries = output.filter((part): part is OutputChunk => part.type === 'chunk' && part.isEntry);
  return new Map(entries.map(({ facadeModuleId, code }) => [`${facadeModuleId}`.slice(prefix.length), code.trim()]));
}

/** Strings that are only in the code of one part, and that a minifier does not change. */
const MARKS = {
  limiter: 'or a function of the subject',
  gate: 'idempotency-status',
  idempotency: 'reexecute',
  errors: 'errors/unexpected_error',
  recommended: 'instagram',
  memory: 'those that it checked are active',
  claims: '67108864',
};
type Part = keyof typeof MARKS;

const partsIn = (code: string): Part[] => (Object.keys(MARKS) as Part[]).filter((part) => code.includes(MARKS[part]));

describe('unused exports', () => {
  it.each(subpaths)('of %s leave nothing in a bundle', async (_, { import: { default: file } }) => {
    expect(await bundleOf(`import {} from ${JSON.stringify(file)};`)).toBe('');
  });

  /** One contains a bundled circuit breaker, as its authors compiled it. The other makes its cases when it is imported. */
  const PREPARED: string[] = [];
  const plain = subpaths.filter(([subpath]) => !PREPARED.includes(subpath));

  let effects: ReadonlyMap<string, string>;
  beforeAll(async () => {
    effects = await effectsOf(plain.map(([, conditions]) => join(ROOT, conditions.import.default)));
  });

  it.each(plain)('of %s can be dropped without the promise of package.json', (_, { import: { default: file } }) => {
    expect(effects.get(join(ROOT, file))).toBe('');
  });
});

describe('a bundle of', () => {
  const whole = Object.fromEntries(
    subpaths.map(
      ([
        subpath,
        {
          import: { default: file },
        },
      ]) => [subpath, file],
    ),
  );
  const some = (names: string, subpath: string) => `export { ${names} } from '${whole[subpath]}';`;

  it.each<[string, string, Part[]]>([
    ['createLimiter', '.', ['limiter', 'memory']],
    ['createIdempotency', '.', ['idempotency']],
    ['createGate', '.', ['gate', 'errors']],
    ['recommendedLimits', './recommended', ['recommended']],
    ['createWindowSet', './stores', []],
    ['parseDuration', '.', []],
    ['createMemoryStore', './memory', ['memory']],
  ])('%s of %s contains only its own part', async (names, subpath, parts) => {
    expect(partsIn(await bundleOf(some(names, subpath)))).toEqual(parts);
  });
});

describe('importing', () => {
  it.each(subpaths)('%s changes nothing global, and leaves no timer running', (subpath) => {
    // A framework may do anything when it is imported: it is imported before the comparison.
    const program = `
      const peers = { './h3': ['h3'], './elysia': ['elysia'], './hono': ['hono'], './nest': ['@nestjs/common'], './fastify': ['fastify'] };
      for (const peer of peers['${subpath}'] ?? []) await import(peer);
      const listeners = () => process.eventNames().map((name) => [name, process.listenerCount(name)]);
      const prototypes = [Object, Array, Promise, Request, Response, Headers].map(({ prototype }) => prototype);
      const seen = () => JSON.stringify([Object.getOwnPropertyNames(globalThis), prototypes.map((one) => Reflect.ownKeys(one).length), listeners()]);
      const before = seen();
      await import('${nameOf(subpath)}');
      console.log(seen() === before, JSON.stringify(process.getActiveResourcesInfo().filter((name) => name === 'Timeout' || name === 'Immediate')));`;
    const output = execFileSync(process.execPath, ['--input-type=module', '-e', program], {
      cwd: ROOT,
      encoding: 'utf8',
    });
    expect(output.trim()).toBe('true []');
  });
});
