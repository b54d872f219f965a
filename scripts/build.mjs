// Builds dist/ anew: a file of an earlier build would be published with it. Then adds the licences of what is bundled into it.
// With --if-changed, only if what goes into the build or what came out of it is not what it was after the last build.
// With --no-types, without declarations: enough to run it, in a third of the time.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { buildConsole } from './console.mjs';
import { buildUnlessUpToDate, filesIn, replaceFolder } from './up-to-date.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
/** The last one names the exact packages that are installed. */
const INPUTS = ['src', 'scripts', 'package.json', 'tsconfig.json', 'node_modules/.package-lock.json'];
const withTypes = !process.argv.includes('--no-types');

const wasBuilt = await buildUnlessUpToDate(
  {
    name: 'build',
    inputs: () => [...readdirSync('.').filter((name) => /^tsup.*\.ts$/.test(name)), ...INPUTS.flatMap(filesIn)].sort(),
    outputs: () => filesIn('dist'),
    kinds: withTypes ? ['types'] : [],
    always: !process.argv.includes('--if-changed'),
  },
  () => replaceFolder('dist', build),
);
if (!wasBuilt) console.log('dist/ is up to date.');

function build(folder) {
  const options = ['--silent', '--out-dir', folder, ...(withTypes ? [] : ['--no-dts'])];
  execFileSync(process.execPath, ['node_modules/tsup/dist/cli-default.js', ...options], { stdio: 'inherit' });
  writeFileSync(`${folder}/THIRD-PARTY-LICENSES.txt`, notices(folder));
}

function notices(folder) {
  /** The bundler says in a comment where each module came from. */
  const modules = readdirSync(folder)
    .filter((file) => /\.c?js$/.test(file))
    .flatMap((file) => [
      ...readFileSync(`${folder}/${file}`, 'utf8').matchAll(/^\/\/ .*node_modules\/((?:@[^/]+\/)?[^/\n]+)\//gm),
    ]);
  const packages = [...new Set([...modules.map(([, name]) => name), ...buildConsole().packages])].sort();
  const texts = packages.map((name) => {
    const source = `node_modules/${name}`;
    const { version, license } = JSON.parse(readFileSync(`${source}/package.json`, 'utf8'));
    const files = readdirSync(source).filter((file) => /^(licen[cs]e|notice)/i.test(file) && !file.endsWith('.js'));
    const text = files.map((file) => readFileSync(`${source}/${file}`, 'utf8').trim()).join('\n\n');
    return `${name} ${version} (${license})\n\n${text || 'The package has no text of its licence.'}\n`;
  });
  const head = 'Packages that are bundled into files of this folder, with their licences.\n';
  return [head, ...texts].join(`\n${'-'.repeat(80)}\n\n`);
}
