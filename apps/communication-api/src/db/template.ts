import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

const BLOCK = 512;
const DIRECTORY = '5';

/**
 * The template beside the built program: a dump of a migrated database. Undefined if the build did not make one: then
 * the migrations make the schema.
 */
export function readTemplate(): Uint8Array | undefined {
  const file = new URL('./template.tar.gz', import.meta.url);
  return existsSync(file) ? readFileSync(file) : undefined;
}

/**
 * Writes the files of the template into a folder. PGlite's own reader takes three times as long.
 * @param template a `tar.gz` as PGlite writes it: short names, each behind its folder
 */
export function unpackTemplate(folder: string, template: Uint8Array): void {
  const tar = gunzipSync(template);
  mkdirSync(folder, { mode: 0o700 });
  for (let start = 0; start + BLOCK <= tar.length && tar[start] !== 0; ) {
    const text = (from: number, length: number): string =>
      tar.toString('latin1', start + from, start + from + length).replace(/\0.*$/s, '');
    const [name, size] = [text(0, 100), Number.parseInt(text(124, 12), 8)];
    const path = join(folder, text(345, 155), name);
    const content = start + BLOCK;
    if (text(156, 1) === DIRECTORY) mkdirSync(path, { mode: 0o700, recursive: true });
    else writeFileSync(path, tar.subarray(content, content + size), { mode: 0o600 });
    start = content + Math.ceil(size / BLOCK) * BLOCK;
  }
}
