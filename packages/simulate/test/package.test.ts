/** The package as npm publishes it: its types and its names in a project of a user. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packHouse } from '../../../scripts/pack.mjs';

const ROOT = resolve(import.meta.dirname, '../../..');
const HOUSES = { headgate: '.', 'headgate-simulate': 'packages/simulate' };

let project: string;
const files: Record<string, readonly string[]> = {};

beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), 'headgate-simulate-'));
  for (const [name, house] of Object.entries(HOUSES)) {
    const packed = packHouse(house, project);
    files[name] = packed.files;
    const installed = join(project, 'node_modules', name);
    mkdirSync(installed, { recursive: true });
    execFileSync('tar', ['-xzf', packed.archive, '--strip-components=1', '-C', installed]);
  }
  symlinkSync(join(ROOT, 'node_modules/lru-cache'), join(project, 'node_modules/lru-cache'));
});

afterAll(() => rmSync(project, { recursive: true, force: true }));

const node = (file: string, source: string): string => {
  writeFileSync(join(project, file), source);
  return execFileSync(process.execPath, [file], { cwd: project, encoding: 'utf8' }).trim();
};

it('contains the build and the README', () => {
  const built = ['index', 'routes'].flatMap((name) =>
    ['cjs', 'd.cts', 'd.ts', 'js'].map((end) => `dist/${name}.${end}`),
  );
  // what both entries share is in a chunk, whose name has a hash
  const contents = (files['headgate-simulate'] ?? []).filter((name) => !/^dist\/chunk-[A-Z0-9]+\.js$/.test(name));
  expect([...contents].sort()).toEqual(['LICENSE', 'README.md', ...built, 'package.json']);
});

it('needs exactly the version of the library that it was built with', () => {
  const manifestOf = (name: string) =>
    JSON.parse(readFileSync(join(project, 'node_modules', name, 'package.json'), 'utf8'));
  expect(manifestOf('headgate-simulate').dependencies).toEqual({ headgate: manifestOf('headgate').version });
});

it('exports the same names to import and to require', () => {
  const esm = node('esm.mjs', "import * as all from 'headgate-simulate'; console.log(Object.keys(all).sort().join());");
  expect(esm).toContain('simulate');
  expect(node('cjs.cjs', "console.log(Object.keys(require('headgate-simulate')).sort().join());")).toBe(esm);
});

it('gives a user types without a fault, in ESM and in CommonJS', () => {
  for (const extension of ['mts', 'cts'])
    copyFileSync(join(import.meta.dirname, 'consumer/consumer.ts'), join(project, `consumer.${extension}`));
  const compilerOptions = {
    ...{ target: 'ES2022', module: 'NodeNext', moduleResolution: 'NodeNext', lib: ['ES2022', 'WebWorker'], types: [] },
    ...{ noEmit: true, strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
  };
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['consumer.*'] }));
  const tsc = join(ROOT, 'node_modules/typescript-7/bin/tsc');
  expect(execFileSync(process.execPath, [tsc, '-p', project], { encoding: 'utf8' })).toBe('');
});
