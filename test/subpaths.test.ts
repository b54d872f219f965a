import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { builtName, SUBPATHS } from '../scripts/subpaths.mjs';
import { manifest, ROOT, subpaths } from './support/package.ts';

const expected = Object.keys(SUBPATHS).map((subpath) => {
  const file = `./dist/${builtName(subpath)}`;
  const conditions = {
    import: { types: `${file}.d.ts`, default: `${file}.js` },
    require: { types: `${file}.d.cts`, default: `${file}.cjs` },
  };
  return [subpath, conditions];
});

it('package.json exports each subpath of scripts/subpaths.mjs, for import and for require, types first', () => {
  // As text, since the order of the conditions matters. That of the subpaths does not.
  const inOrder = (entries: unknown[]) => entries.map((entry) => JSON.stringify(entry)).sort();
  expect(inOrder(subpaths)).toEqual(inOrder(expected));
});

it('package.json also exports itself and nothing else', () => {
  const others = Object.keys(manifest.exports).filter((subpath) => !(subpath in SUBPATHS));
  expect(others).toEqual(['./package.json']);
});

it('package.json names the types of each subpath for compilers that do not read its exports', () => {
  const { types, typesVersions } = manifest;
  const { [types.slice('./'.length)]: ofRoot, ...others } = typesVersions['*'] ?? {};
  expect([ofRoot, others]).toEqual([[types], { '*': ['./dist/*.d.ts'] }]);
});

it('each subpath has a limit of its size', () => {
  const limits = readFileSync(join(ROOT, '.size-limit.js'), 'utf8').match(/const WHOLE = \{(.*?)\n\};/s)?.[1] ?? '';
  expect([...limits.matchAll(/^ {2}'(\S+)': [\d_]+,$/gm)].map(([, subpath]) => subpath).sort()).toEqual(
    Object.keys(SUBPATHS).sort(),
  );
});
