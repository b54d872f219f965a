import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { copyHouse, PACKAGES } from '../scripts/pack.mjs';
import { addressOfRepository, withAbsoluteLinks } from '../scripts/packed-links.mjs';
import { install, manifest, nameOf, type Packed, pack, ROOT, subpaths } from './support/package.ts';

let packed: Packed;
let folder: string;
let installed: string;

beforeAll(() => {
  packed = pack();
  folder = install(packed, 'project', ['@nestjs/common', '@nestjs/core', '@opentelemetry/api', 'h3', 'hono']);
  installed = join(folder, 'node_modules/headgate');
});

afterAll(() => rmSync(packed.folder, { recursive: true, force: true }));

/** The comment that the bundler writes in front of a module. */
const BUNDLED_FROM = /^\/\/ .*node_modules\/((?:@[^/]+\/)?[^/\n]+)\//gm;

function node(file: string, source: string): string {
  writeFileSync(join(folder, file), source);
  return execFileSync(process.execPath, [file], { cwd: folder, encoding: 'utf8' }).trim();
}

describe('the packed package', () => {
  it('contains every file that its exports name', () => {
    const targets = subpaths.flatMap(([, conditions]) =>
      Object.values(conditions).flatMap((kind) => Object.values(kind)),
    );
    expect(targets.length).toBeGreaterThanOrEqual(20);
    expect(targets.filter((target) => !existsSync(join(installed, target)))).toEqual([]);
  });

  it('contains the build, README, CHANGELOG and licences, and nothing else', () => {
    const others = ['CHANGELOG.md', 'LICENSE', 'README.md', 'dist/THIRD-PARTY-LICENSES.txt', 'package.json'];
    const isBuilt = (path: string) => /^dist\/[^/]+\.(c?js|d\.c?ts)$/.test(path);
    expect(packed.files.filter((path) => !isBuilt(path)).sort()).toEqual(others);
  });

  it('is at most 3 MB unpacked, and has no command', () => {
    expect(packed.unpackedBytes).toBeLessThanOrEqual(3_000_000);
    expect(JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')).bin).toBeUndefined();
  });

  it('contains the licence of every package that is bundled into it', () => {
    const notices = readFileSync(join(installed, 'dist/THIRD-PARTY-LICENSES.txt'), 'utf8');
    const bundled = packed.files
      .filter((path) => /\.c?js$/.test(path))
      .flatMap((path) =>
        [...readFileSync(join(installed, path), 'utf8').matchAll(BUNDLED_FROM)].map(([, name]) => name),
      );
    expect(new Set(bundled)).toContain('@noble/hashes');
    expect([...new Set(bundled)].filter((name) => !notices.includes(`\n${name} `))).toEqual([]);
    expect(notices).not.toContain('has no text of its licence');
  });

  it('has one runtime dependency', () => {
    expect(Object.keys(manifest.dependencies)).toEqual(['lru-cache']);
  });

  describe('exports the same names to import and to require', () => {
    const names = subpaths.map(([subpath]) => nameOf(subpath));
    let imported: Record<string, string[]>;
    let required: Record<string, string[]>;

    // All in one process per format. tree-shaking.test.ts loads each subpath alone.
    beforeAll(() => {
      const printNames = (load: string) => `const exported = {};
        for (const name of ${JSON.stringify(names)}) exported[name] = Object.keys(${load}(name)).sort();
        console.log(JSON.stringify(exported));`;
      imported = JSON.parse(node('esm.mjs', printNames('await import')));
      required = JSON.parse(node('cjs.cjs', printNames('require')));
    });

    it.each(names)('%s', (name) => {
      expect(required[name]).toEqual(imported[name]);
      expect(imported[name]).not.toContain('default');
      expect(imported[name]).not.toEqual([]);
    });
  });

  it.each([[[]], [['browser']], [['workerd', 'worker', 'browser']]])(
    'needs nothing from Node if a bundler uses the conditions %j',
    async (conditions) => {
      const names = [
        'headgate',
        ...['stores', 'recommended', 'memory', 'http', 'fetch', 'hono', 'client', 'client-ip', 'otel'].map(
          (name) => `headgate/${name}`,
        ),
      ];
      const { outputFiles, warnings } = await build({
        stdin: { contents: names.map((name, i) => `export * as e${i} from '${name}';`).join('\n'), resolveDir: folder },
        bundle: true,
        write: false,
        format: 'esm',
        platform: 'neutral',
        mainFields: ['module', 'main'],
        conditions,
        // Without a condition, lru-cache looks for this module, and works without it.
        external: conditions.length === 0 ? ['node:diagnostics_channel'] : [],
        logLevel: 'silent',
      });
      const [bundle = ''] = outputFiles.map(({ text }) => text);
      expect(warnings).toEqual([]);
      expect(bundle).not.toMatch(/(from |require\()["']node:/);
      expect(bundle).toContain('btoa(');
    },
  );

  it('isHeadgateError of the ESM copy recognises an error of the CommonJS copy', () => {
    const source = `import { createRequire } from 'node:module'; import { isHeadgateError, CostError } from 'headgate';
      const copy = createRequire(import.meta.url)('headgate'); const error = new copy.CostError(0);
      console.log(error instanceof CostError, isHeadgateError(error, 'invalid_cost'));`;
    expect(node('copies.mjs', source)).toBe('false true');
  });

  it('S6: in CommonJS too, the gates of two subpaths know each other', () => {
    const source = `const { createGate, createLimiter } = require('headgate');
      const { createMemoryStore } = require('headgate/memory');
      const { withHeadgate } = require('headgate/fetch');
      const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['3/1m'] } });
      const inner = withHeadgate(createGate({ limiter, account: () => 'a', route: () => 'r' }), () => new Response());
      const outer = withHeadgate({ perAddress: ['100/1m'], address: () => '203.0.113.1' }, inner);
      outer(new Request('http://localhost')).then(({ headers }) => console.log(headers.get('x-ratelimit-remaining')));`;
    expect(node('stack.cjs', source)).toBe('2');
  });
});

describe('pages in the packed packages', () => {
  const REPOSITORY = 'https://example.org/owner/name';
  /** The text of every page of a package, by its name. */
  function pagesOf(house: string, address: string | null): [name: string, text: string][] {
    const copy = mkdtempSync(join(packed.folder, 'copy-'));
    copyHouse(house, copy, address);
    const pages = readdirSync(copy, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.md'));
    return pages.map((page) => [page, readFileSync(join(copy, page), 'utf8')]);
  }
  const linksOf = (text: string): RegExpMatchArray[] => [
    ...text.replace(/^```.*?^```/gms, '').matchAll(/(!?)\[(?:[^[\]]|\[[^\]]*\])*\]\(([^)]*)\)/g),
  ];

  it.each(PACKAGES)('%s: every link leads to a file of the tagged version', (house) => {
    const { version } = JSON.parse(readFileSync(join(ROOT, house, 'package.json'), 'utf8'));
    const pages = pagesOf(house, REPOSITORY);
    expect(pages.map(([name]) => name)).toContain('README.md');
    const links = pages.flatMap(([, text]) => linksOf(text));
    expect(links.length).toBeGreaterThan(1);
    for (const [link, image, target = ''] of links) {
      const kind = image ? 'raw' : 'blob';
      const [base, path = ''] = target.split(`/${kind}/v${version}/`);
      expect(base, link).toBe(REPOSITORY);
      // pointers.test.ts checks the headings.
      expect(existsSync(join(ROOT, path.split('#', 1)[0] as string)), link).toBe(true);
    }
  });

  it('without a known repository, no link leads nowhere', () => {
    // npm takes a second to list the files, and the smallest package is copied as the others are.
    const [[, readme = ''] = [], ...others] = pagesOf('packages/simulate', null);
    expect(others).toEqual([]);
    expect(readme.length).toBeGreaterThan(500);
    expect(linksOf(readme)).toEqual([]);
  });

  it.each(PACKAGES)('%s: without a known repository, a link of its pages becomes its text', (house) => {
    const pages = readdirSync(join(ROOT, house)).filter((file) => file.endsWith('.md'));
    expect(pages).toContain('README.md');
    for (const page of pages) {
      const text = withAbsoluteLinks(readFileSync(join(ROOT, house, page), 'utf8'), posix.join(house, page), null);
      expect(linksOf(text).filter(([, , target = '']) => !/^(\w+:|#)/.test(target))).toEqual([]);
    }
  });

  it.each([
    ['github:owner/name', 'https://github.com/owner/name'],
    [{ url: 'git+https://github.com/owner/name.git' }, 'https://github.com/owner/name'],
    [undefined, null],
  ])('the repository %j is at %s', (repository, address) => expect(addressOfRepository(repository)).toBe(address));

  it('refuses a repository without a web address', () => {
    expect(() => addressOfRepository('git@example.org:owner/name.git')).toThrow('package.json: repository: must be');
  });
});
