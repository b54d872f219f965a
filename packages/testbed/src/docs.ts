import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** The folder of the repository. */
export const ROOT = resolve(import.meta.dirname, '../../..');

/** The text of a file, by its path in the repository. */
export const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

/** The files of a folder and its folders, as paths in the repository. */
export const filesIn = (folder: string, ending: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(ending))
    .map((file) => `${folder}/${file}`);

/** Cells of the rows of the table whose first column is headed `head`. */
export function rowsOf(page: string, head: string): readonly (readonly string[])[] {
  const lines = read(page).split('\n');
  const cells = (line: string): string[] => line.split(' | ').map((cell) => cell.replace(/^\| | \|$/g, '').trim());
  const start = lines.findIndex((line) => line.startsWith('|') && plain(cells(line)[0] as string) === head);
  if (start === -1) throw new Error(`${page} has no table "${head}"`);
  const end = lines.findIndex((line, i) => i > start && !line.startsWith('|'));
  return lines.slice(start + 2, end === -1 ? undefined : end).map(cells);
}

export const plain = (cell: string): string => cell.replaceAll('`', '');

/** Names in the first column: `consume` of the cell `consume(account, route)`. */
export const namesOf = (rows: readonly (readonly string[])[]): string[] =>
  rows.flatMap(([first = '']) => [...first.matchAll(/`([^`(]+)[^`]*`/g)].map(([, name]) => name as string));
