import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';

/** The text of a file, or the reason why it cannot be read. The reason names the file and never shows its content. */
export type FileText = { readonly text: string } | { readonly reason: string };

/** No secret and no chain of certificates is as long. */
const MAX_BYTES = 1_048_576;

/**
 * Reads a file that a config names. Only a regular file, also behind a link: the process would wait for ever for the
 * writer of a pipe, and would read a device without an end. A reload reads while requests run.
 * @param folder the config file's folder: the name is relative to it
 */
export function readReferencedFile(name: string, folder: string): FileText {
  const file = `the file ${JSON.stringify(name)}`;
  try {
    const path = resolve(folder, name);
    const stats = statSync(path);
    if (!stats.isFile() && !stats.isDirectory()) return { reason: `${file} is not a regular file` };
    if (stats.size > MAX_BYTES) return { reason: `${file} is larger than 1 MiB` };
    const text = readFileSync(path, 'utf8');
    return text.trim() === '' ? { reason: `${file} is empty` } : { text };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return { reason: code === 'ENOENT' ? `${file} does not exist` : `${file} cannot be read (${code})` };
  }
}
