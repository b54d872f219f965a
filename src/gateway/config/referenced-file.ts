import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

/** The text of a file, or why there is none. The reason names the file and never shows its content. */
export type FileText = { readonly text: string } | { readonly reason: string };

/**
 * Reads a file that a config names.
 * @param folder that of the config file: the name is relative to it
 */
export function readReferencedFile(name: string, folder: string): FileText {
  const file = `the file ${JSON.stringify(name)}`;
  try {
    const text = readFileSync(resolve(folder, name), 'utf8');
    return text.trim() === '' ? { reason: `${file} is empty` } : { text };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return { reason: code === 'ENOENT' ? `${file} does not exist` : `${file} cannot be read (${code})` };
  }
}
