import { readdirSync, readFileSync } from 'node:fs';

/**
 * The licences of the packages that are bundled into the scripts of a folder, as one text.
 * @param {string} folder
 * @param {readonly string[]} more packages that are bundled in another way
 * @returns {string}
 */
export function notices(folder, more = []) {
  /** The bundler says in a comment where each module came from. */
  const modules = readdirSync(folder)
    .filter((file) => /\.c?js$/.test(file))
    .flatMap((file) => [
      ...readFileSync(`${folder}/${file}`, 'utf8').matchAll(/^\/\/ .*node_modules\/((?:@[^/]+\/)?[^/\n]+)\//gm),
    ]);
  const packages = [...new Set([...modules.map(([, name]) => name), ...more])].sort();
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
