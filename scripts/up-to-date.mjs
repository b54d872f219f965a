// What a build was made from, and what came out of it, as hashes: whether it has to be made again.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Not in dist/, which is published as it is. */
const STAMPS = 'node_modules/.cache/headgate';

/**
 * Runs a build unless its result is up to date, or cannot be made anew: an installation without the packages for
 * development keeps what was built.
 * @param {object} what
 * @param {string} what.name names the stamp
 * @param {() => string[]} what.inputs the files that go into the build
 * @param {() => string[]} what.outputs the files that came out of it
 * @param {readonly string[]} what.kinds what the build makes; a build that made more is up to date as well
 * @param {boolean} what.always whether it runs although its result is up to date
 * @param {string} what.says is printed on the standard error before the build runs; absent: nothing
 * @param {() => void | Promise<void>} build
 * @returns {Promise<boolean>} whether it ran
 */
export async function buildUnlessUpToDate({ name, inputs, outputs, kinds = [], always, says }, build) {
  const file = join(STAMPS, `${name}.json`);
  const last = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
  const before = hashOf(inputs());
  const isUpToDate =
    last !== undefined &&
    last.node === process.version &&
    last.inputs === before &&
    kinds.every((kind) => last.kinds?.includes(kind)) &&
    last.outputs === hashOf(outputs());
  if (!always && (isUpToDate || (outputs().length > 0 && !existsSync('node_modules/tsup')))) return false;
  if (says !== undefined) console.error(says);
  await build();
  mkdirSync(dirname(file), { recursive: true });
  // A file that was changed during the build may be in it or not: then the next build is not spared.
  if (hashOf(inputs()) === before)
    writeFileSync(file, JSON.stringify({ node: process.version, kinds, inputs: before, outputs: hashOf(outputs()) }));
  else rmSync(file, { force: true });
  return true;
}

/**
 * Makes a folder anew. Until that is done, and if it fails, the folder stays as it was.
 * @param {string} folder
 * @param {(fresh: string) => void} make fills a new folder
 */
export function replaceFolder(folder, make) {
  const [fresh, old] = [`${folder}.new`, `${folder}.old`];
  for (const rest of [fresh, old]) rmSync(rest, { recursive: true, force: true });
  make(fresh);
  if (existsSync(folder)) renameSync(folder, old);
  renameSync(fresh, folder);
  rmSync(old, { recursive: true, force: true });
}

/** All files of a folder, or the file itself. */
export function filesIn(path) {
  if (!existsSync(path)) return [];
  if (/\.\w+$/.test(path)) return [path];
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
