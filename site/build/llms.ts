import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { GROUPS, nameOf, pageOf } from './navigation.ts';
import { placeOf, ROOT } from './pages.ts';

/**
 * Writes `llms.txt` (https://llmstxt.org): every page in the order of the sidebar, with what it is for. The pages
 * themselves lie beside their HTML as Markdown.
 */
export function writeLlmsTxt(folder: string, address: string, description: string): void {
  const lines = [`# headgate`, '', `> ${description}`];
  for (const { text, entries } of GROUPS) {
    lines.push('', `## ${text}`, '');
    for (const entry of entries) {
      const page = pageOf(entry);
      const place = placeOf(page);
      mkdirSync(dirname(join(folder, place)), { recursive: true });
      copyFileSync(join(ROOT, page), join(folder, place));
      lines.push(`- [${nameOf(entry)}](${address}${place}): ${purposeOf(page)}`);
    }
  }
  writeFileSync(join(folder, 'llms.txt'), `${lines.join('\n')}\n`);
}

/** The first sentence below the heading, without links. */
function purposeOf(page: string): string {
  const text = readFileSync(join(ROOT, page), 'utf8').replace(/^---\n.*?\n---\n/s, '');
  const paragraph = /^# .+\n+(?:## .+\n+)?([^#|`\n](?:.+\n?)+)/m.exec(text)?.[1] ?? '';
  const plain = paragraph.replace(/\s+/g, ' ').replace(/!?\[([^\]]+)\]\([^)]*\)/g, '$1');
  return /^.+?[.:](?=\s|$)/.exec(plain)?.[0].replace(/:$/, '.') ?? plain.trim();
}
