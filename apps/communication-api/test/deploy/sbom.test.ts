/** The software bill of materials: see also test/process/image.nightly.test.ts, which compares it with an installation. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../support/deploy-files.ts';

interface Component {
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  readonly licenses?: readonly { readonly license?: { readonly id?: string }; readonly expression?: string }[];
}

/** Licences that ask for nothing but their text to be kept. */
const PERMISSIVE =
  /^(MIT|MIT-0|ISC|0BSD|BSD-[23]-Clause|Apache-2\.0|BlueOak-1\.0\.0|CC0-1\.0|Unlicense|PostgreSQL|\(MIT OR (EUPL-1\.1\+|CC0-1\.0|Apache-2\.0)\))$/;

const { bomFormat, components, dependencies } = JSON.parse(
  execFileSync('npm', ['run', '--silent', 'sbom'], { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 26 }),
) as {
  readonly bomFormat: string;
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
};
const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
  packages: Record<string, { readonly version?: string; readonly integrity?: string }>;
};
const others = components.filter(({ name }) => name !== 'communication-api');

test('it lists the service, every package that it depends on, and none of its tests', () => {
  expect(bomFormat).toBe('CycloneDX');
  const names = components.map(({ name }) => name);
  const manifest = JSON.parse(readFileSync(join(ROOT, 'apps/communication-api/package.json'), 'utf8'));
  const wanted = Object.keys(manifest.dependencies as object).filter((name) => name !== 'headgate');
  expect(wanted.filter((name) => !names.includes(name))).toEqual([]);
  expect(Object.keys(manifest.devDependencies as object).filter((name) => names.includes(name))).toEqual([
    // The service gets it through another package.
    ...Object.keys(manifest.devDependencies as object).filter((name) => INDIRECT.includes(name)),
  ]);
  const refs = new Set(dependencies.flatMap(({ dependsOn }) => dependsOn));
  expect(others.filter(({ name, version }) => !refs.has(`${name}@${version}`))).toEqual([]);
});

/** Packages of the tests that other packages of the service need as well. */
const INDIRECT = ['ajv', 'ajv-formats', 'parse5'];

test('every package has the hash of the lock file', () => {
  const integrities = new Map(
    Object.entries(lock.packages).map(([path, { version, integrity }]) => [
      `${path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)}@${version}`,
      integrity,
    ]),
  );
  for (const { name, version, hashes = [] } of others) {
    const [hash] = hashes;
    const base64 = Buffer.from(hash?.content ?? '', 'hex').toString('base64');
    expect(`${hash?.alg.toLowerCase().replace('-', '')}-${base64}`, name).toBe(integrities.get(`${name}@${version}`));
  }
});

test('every package has a licence that allows its use', () => {
  const licenceOf = ({ licenses = [] }: Component) => licenses[0]?.license?.id ?? licenses[0]?.expression ?? 'none';
  const odd = others.filter((each) => !PERMISSIVE.test(licenceOf(each)));
  expect(odd.map((each) => `${each.name}: ${licenceOf(each)}`)).toEqual([]);
});
