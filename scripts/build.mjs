// Builds dist/ anew: a file of an earlier build would be published with it. Then adds the licences of what is bundled into it.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

rmSync('dist', { recursive: true, force: true });
execFileSync('tsup', ['--silent'], { stdio: 'inherit', shell: process.platform === 'win32' });

/** The bundler says in a comment where each module came from. */
const modules = readdirSync('dist')
  .filter((file) => /\.c?js$/.test(file))
  .flatMap((file) => [
    ...readFileSync(`dist/${file}`, 'utf8').matchAll(/^\/\/ .*node_modules\/((?:@[^/]+\/)?[^/\n]+)\//gm),
  ]);
const packages = [...new Set(modules.map(([, name]) => name))].sort();

const notices = packages.map((name) => {
  const folder = `node_modules/${name}`;
  const { version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
  const texts = readdirSync(folder).filter((file) => /^(licen[cs]e|notice)/i.test(file) && !file.endsWith('.js'));
  const text = texts.map((file) => readFileSync(`${folder}/${file}`, 'utf8').trim()).join('\n\n');
  return `${name} ${version} (${license})\n\n${text || 'No text of the licence came with it.'}\n`;
});
const head = 'What is bundled into files of this folder, and under which licence.\n';
writeFileSync('dist/THIRD-PARTY-LICENSES.txt', [head, ...notices].join(`\n${'-'.repeat(80)}\n\n`));
