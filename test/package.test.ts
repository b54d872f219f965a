import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '..');
const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const subpaths = Object.entries<Record<string, Record<string, string>> | string>(manifest.exports).filter(
  (entry): entry is [string, Record<string, Record<string, string>>] => typeof entry[1] === 'object',
);

let folder: string;
let installed: string;
let packed: string[];

/** The package as npm would publish it, unpacked where a user's node_modules would have it. */
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-package-'));
  const run = (command: string, args: string[], cwd: string) =>
    execFileSync(command, args, { cwd, encoding: 'utf8', stdio: 'pipe' });
  const [{ filename, files }] = JSON.parse(
    run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder], ROOT),
  );
  packed = files.map((file: { path: string }) => file.path);
  installed = join(folder, 'node_modules/headgate');
  mkdirSync(installed, { recursive: true });
  run('tar', ['-xzf', join(folder, filename), '--strip-components=1', '-C', installed], folder);
  // What users have installed beside it.
  for (const name of ['lru-cache', 'h3']) {
    symlinkSync(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name));
  }
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

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
    expect(existsSync(join(installed, manifest.exports['./config.schema.json']))).toBe(true);
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
    const name = subpath.replace('.', 'headgate');
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
