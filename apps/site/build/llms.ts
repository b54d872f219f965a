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

/** The first sentence of the first paragraph, without links. A page of frontmatter has its description. */
function purposeOf(page: string): string {
  const text = readFileSync(join(ROOT, page), 'utf8');
  const description = /^---\n.*?^description: (.+?)$.*?^---$/ms.exec(text)?.[1];
  if (description !== undefined) return description;
  const prose = text.replace(/^```.*?^```$/gms, '').replace(/^#.*$/gm, '');
  const paragraph = /^(?:[\p{L}*`[](?:.+\n?)+)/mu.exec(prose)?.[0] ?? '';
  const plain = paragraph.replace(/\s+/g, ' ').replace(/!?\[([^\]]+)\]\([^)]*\)/g, '$1');
  return (/^.+?[.:](?=\s|$)/.exec(plain)?.[0] ?? plain).trim().replace(/:$/, '.');
}
