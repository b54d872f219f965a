import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { build } from 'esbuild';
import { rollup } from 'rollup';
import { describe, expect, it } from 'vitest';
import { manifest, nameOf, ROOT, subpaths } from './support/package.ts';

const EXTERNAL = [...Object.keys(manifest.peerDependencies), ...Object.keys(manifest.dependencies)];

/** What esbuild leaves of a program, minified. */
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

/** What rollup leaves of a file that is imported for its effects alone, if it does not take package.json's word that there are none. */
async function effectsOf(file: string): Promise<string> {
  const bundle = await rollup({
    input: 'effects',
    // An empty chunk is what is hoped for.
    onwarn: () => undefined,
    external: (id) => !/^[./]/.test(id) && id !== 'effects',
    treeshake: { moduleSideEffects: (_, isExternal) => !isExternal },
    plugins: [
      {
        name: 'only-for-its-effects',
        resolveId: (id) => (id === 'effects' ? id : null),
        load: (id) => (id === 'effects' ? `import ${JSON.stringify(file)};` : null),
      },
    ],
  });
  const { output } = await bundle.generate({});
  return output[0].code.trim();
}

/** Strings that only the code of one part has, and that no minifier changes. */
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

describe('what nobody uses', () => {
  it.each(subpaths)('of %s leaves nothing behind', async (_, { import: { default: file } }) => {
    expect(await bundleOf(`import {} from ${JSON.stringify(file)};`)).toBe('');
  });

  /** A breaker is bundled into one, as its authors compiled it; the other makes its cases at once. */
  const PREPARED = ['./redis', './testing'];
  const plain = subpaths.filter(([subpath]) => !PREPARED.includes(subpath));

  it.each(plain)('of %s can be dropped without asking package.json', async (_, { import: { default: file } }) => {
    expect(await effectsOf(join(ROOT, file))).toBe('');
  });
});

describe('what is bundled of', () => {
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
    ['createLimiter', '.', ['limiter']],
    ['createIdempotency', '.', ['idempotency']],
    ['createGate', '.', ['gate', 'errors']],
    ['recommendedLimits', '.', ['recommended']],
    ['parseDuration', '.', []],
    ['createMemoryStore', './memory', ['memory']],
  ])('%s of %s is its own part', async (names, subpath, parts) => {
    expect(partsIn(await bundleOf(some(names, subpath)))).toEqual(parts);
  });
});

describe('importing', () => {
  it.each(subpaths)('%s changes nothing, and keeps nothing running', (subpath) => {
    // What a framework does when it is imported is its own business: it is there before.
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
