import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { install, manifest, nameOf, type Packed, pack, subpaths } from './support/package.ts';

let packed: Packed;
let folder: string;
let installed: string;

beforeAll(() => {
  packed = pack();
  folder = install(packed, 'project', ['h3']);
  installed = join(folder, 'node_modules/headgate');
});

afterAll(() => rmSync(packed.folder, { recursive: true, force: true }));

function node(file: string, source: string): string {
  writeFileSync(join(folder, file), source);
  return execFileSync(process.execPath, [file], { cwd: folder, encoding: 'utf8' }).trim();
}

describe('the packed package', () => {
  it('has every file that its exports name', () => {
    const targets = subpaths.flatMap(([, conditions]) =>
      Object.values(conditions).flatMap((kind) => Object.values(kind)),
    );
    expect(targets.length).toBeGreaterThanOrEqual(20);
    expect(targets.filter((target) => !existsSync(join(installed, target)))).toEqual([]);
    expect(existsSync(join(installed, manifest.bin.headgate))).toBe(true);
    expect(existsSync(join(installed, String(manifest.exports['./config.schema.json'])))).toBe(true);
  });

  it('holds only what is meant for users', () => {
    expect(
      packed.filter(
        (path) =>
          !/^(dist\/|docs\/(adapters\/)?[^/]+\.(md|json|svg|pml)$|package\.json|README\.md|LICENSE|CHANGELOG\.md|CONTRIBUTING\.md)/.test(
            path,
          ),
      ),
    ).toEqual([]);
  });

  it('has one runtime dependency', () => {
    expect(Object.keys(manifest.dependencies)).toEqual(['lru-cache']);
  });

  it.each(subpaths.map(([subpath]) => subpath))('%s gives the same names to import and to require', (subpath) => {
    const name = nameOf(subpath);
    const esm = node('esm.mjs', `import * as all from '${name}'; console.log(Object.keys(all).sort().join());`);
    const cjs = node('cjs.cjs', `console.log(Object.keys(require('${name}')).sort().join());`);
    expect(cjs).toBe(esm);
    expect(esm).not.toMatch(/default/);
    expect(esm.length).toBeGreaterThan(0);
  });

  it.each([[[]], [['browser']], [['workerd', 'worker', 'browser']]])(
    'asks nothing of Node where a bundler knows the conditions %j',
    async (conditions) => {
      const names = [
        'headgate',
        ...['memory', 'http', 'fetch', 'hono', 'client', 'client-ip'].map((name) => `headgate/${name}`),
      ];
      const { outputFiles, warnings } = await build({
        stdin: { contents: names.map((name, i) => `export * as e${i} from '${name}';`).join('\n'), resolveDir: folder },
        bundle: true,
        write: false,
        format: 'esm',
        platform: 'neutral',
        mainFields: ['module', 'main'],
        conditions,
        // Asked for with a way out by lru-cache, where no condition says what it is on.
        external: conditions.length === 0 ? ['node:diagnostics_channel'] : [],
        logLevel: 'silent',
      });
      const [bundle = ''] = outputFiles.map(({ text }) => text);
      expect(warnings).toEqual([]);
      expect(bundle).not.toMatch(/(from |require\()["']node:/);
      expect(bundle).toContain('btoa(');
    },
  );

  it('an error of the CommonJS copy is told by the guard of the ESM copy', () => {
    const source = `import { createRequire } from 'node:module'; import { isHeadgateError, CostError } from 'headgate';
      const copy = createRequire(import.meta.url)('headgate'); const error = new copy.CostError(0);
      console.log(error instanceof CostError, isHeadgateError(error, 'invalid_cost'));`;
    expect(node('copies.mjs', source)).toBe('false true');
  });

  it('the command runs with nothing installed beside it', () => {
    const alone = join(folder, 'alone.cjs');
    writeFileSync(alone, readFileSync(join(installed, manifest.bin.headgate)));
    expect(execFileSync(process.execPath, [alone, '--version'], { cwd: tmpdir(), encoding: 'utf8' }).trim()).toMatch(
      /\d+\.\d+\.\d+/,
    );
  });
});
