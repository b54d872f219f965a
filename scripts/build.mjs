// Builds dist/ anew: a file of an earlier build would be published with it. Then adds the licences of what is bundled into it.
// With --if-changed, only if what goes into the build or what came out of it is not what it was after the last build.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
/** The hashes of the last build. Not in dist/, which is published as it is. */
const STAMP = 'node_modules/.cache/headgate/build.json';
/** The last one names the exact packages that are installed. */
const INPUTS = ['src', 'scripts', 'package.json', 'tsconfig.json', 'node_modules/.package-lock.json'];

if (process.argv.includes('--if-changed') && existsSync(STAMP) && readFileSync(STAMP, 'utf8') === stamp()) {
  console.log('dist/ is up to date.');
} else {
  const inputs = hashOf(inputFiles());
  build();
  mkdirSync(dirname(STAMP), { recursive: true });
  // A file that was changed during the build may be in it or not: then the next build is not spared.
  if (hashOf(inputFiles()) === inputs) writeFileSync(STAMP, stamp());
  else rmSync(STAMP, { force: true });
}

function build() {
  rmSync('dist', { recursive: true, force: true });
  execFileSync(process.execPath, ['node_modules/tsup/dist/cli-default.js', '--silent'], { stdio: 'inherit' });
  writeFileSync('dist/THIRD-PARTY-LICENSES.txt', notices());
}

function stamp() {
  return JSON.stringify({ node: process.version, inputs: hashOf(inputFiles()), dist: hashOf(filesIn('dist')) });
}

function inputFiles() {
  const configs = readdirSync('.').filter((name) => /^tsup.*\.ts$/.test(name));
  return [...configs, ...INPUTS.flatMap(filesIn)].sort();
}

/** All files of a folder, or the file itself. */
function filesIn(path) {
  if (!existsSync(path)) return [];
  if (/\.json$/.test(path)) return [path];
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

function hashOf(files) {
  const hash = createHash('sha256');
  for (const file of files) hash.update(`${file}\0`).update(createHash('sha256').update(readFileSync(file)).digest());
  return hash.digest('hex');
}

function notices() {
  /** The bundler says in a comment where each module came from. */
  const modules = readdirSync('dist')
    .filter((file) => /\.c?js$/.test(file))
    .flatMap((file) => [
      ...readFileSync(`dist/${file}`, 'utf8').matchAll(/^\/\/ .*node_modules\/((?:@[^/]+\/)?[^/\n]+)\//gm),
    ]);
  const packages = [...new Set(modules.map(([, name]) => name))].sort();
  const texts = packages.map((name) => {
    const folder = `node_modules/${name}`;
    const { version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
    const files = readdirSync(folder).filter((file) => /^(licen[cs]e|notice)/i.test(file) && !file.endsWith('.js'));
    const text = files.map((file) => readFileSync(`${folder}/${file}`, 'utf8').trim()).join('\n\n');
    return `${name} ${version} (${license})\n\n${text || 'The package has no text of its licence.'}\n`;
  });
  const head = 'Packages that are bundled into files of this folder, with their licences.\n';
  return [head, ...texts].join(`\n${'-'.repeat(80)}\n\n`);
}
