// Packs the published packages: node scripts/pack.mjs [FOLDER]; it makes the archives in FOLDER, by default reports/packages.
// The manifests in this repository link the packages by `file:`. The packed ones name the exact version, in a copy.
// Links of packed pages are absolute: see `packed-links.mjs`.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, posix, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { addressOfRepository, withAbsoluteLinks } from './packed-links.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** In the order of publishing: each needs only the packages before it. */
export const PACKAGES = ['.', 'packages/simulate', 'apps/gateway'];

/**
 * Packs a house that is built.
 * @param {string} house folder in the repository
 * @param {string} target folder of the archive
 * @param {string | null} address web address of the repository, for links; null leaves out the addresses
 * @returns {{ archive: string, files: string[], unpackedBytes: number }} the archive's path, its files, and their bytes
 */
export function packHouse(house, target, address = repositoryAddress()) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-pack-'));
  try {
    copyHouse(house, folder, address);
    mkdirSync(target, { recursive: true });
    const { filename, files, unpackedSize } = npmPack(folder, ['--pack-destination', resolve(target)]);
    return { archive: join(target, filename), files: files.map(({ path }) => path), unpackedBytes: unpackedSize };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * Copies the files of a package, as they are published.
 * @param {string} house folder in the repository
 * @param {string} folder
 * @param {string | null} address web address of the repository, for links; null leaves out the addresses
 */
export function copyHouse(house, folder, address) {
  const source = join(ROOT, house);
  const manifest = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'));
  const repository = address === null ? null : { address, tag: `v${manifest.version}` };
  for (const { path } of npmPack(source, ['--dry-run']).files) {
    cpSync(join(source, path), join(folder, path));
    if (!path.endsWith('.md')) continue;
    const text = readFileSync(join(source, path), 'utf8');
    writeFileSync(join(folder, path), withAbsoluteLinks(text, posix.join(house, path), repository));
  }
  cpSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(published(manifest), null, 2)}\n`);
}

/** The manifest without the parts that only this repository uses. */
function published({
  devDependencies: _,
  scripts: __,
  workspaces: ___,
  overrides: ____,
  allowScripts: _____,
  ...manifest
}) {
  const { dependencies = {} } = manifest;
  const linked = Object.entries(dependencies).filter(([, range]) => range.startsWith('file:'));
  const exact = linked.map(([name, range]) => {
    const house = PACKAGES.find((each) => nameIn(each) === name);
    if (house === undefined) throw new Error(`${manifest.name}: ${name} is ${range}, and is not a published package`);
    return [name, manifestOf(house).version];
  });
  return { ...manifest, dependencies: { ...dependencies, ...Object.fromEntries(exact) } };
}

/** The web address of the repository; null until the manifest of the library names it. */
export const repositoryAddress = () => addressOfRepository(manifestOf('.').repository);

const manifestOf = (house) => JSON.parse(readFileSync(join(ROOT, house, 'package.json'), 'utf8'));
const nameIn = (house) => manifestOf(house).name;

function npmPack(cwd, options) {
  const output = execFileSync('npm', ['pack', '--ignore-scripts', '--json', ...options], {
    cwd,
    encoding: 'utf8',
    stdio: 'pipe',
  });
  return JSON.parse(output)[0];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const target = process.argv[2] ?? join(ROOT, 'reports/packages');
  for (const house of PACKAGES) {
    const { archive, files, unpackedBytes } = packHouse(house, target);
    console.log(`${archive} (${files.length} files, ${(unpackedBytes / 1e6).toFixed(2)} MB unpacked)`);
  }
}
