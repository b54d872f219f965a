import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { MarkdownRenderer } from 'vitepress';
import { API, addressOf, ROOT, targetOf } from './pages.ts';

type Token = ReturnType<MarkdownRenderer['parse']>[number];

/** Files of the repository that pages link to. The build copies them into the site. */
export const linkedFiles = new Set<string>();

/** The address of a file that is not a page. */
export const addressOfFile = (file: string): string => `/files/${file}`;

/**
 * GitHub's rule for the anchor of a heading. The pages are also read there, so their links have its anchors.
 */
export function slugify(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-');
}

/** Makes the links of pages lead to pages of the site and to copied files; and code and tables usable by keyboard. */
export function repositoryMarkdown(base: string): (md: MarkdownRenderer) => void {
  return (md) => {
    md.core.ruler.push('repository-links', ({ tokens, env }) => {
      const file: unknown = env.realPath ?? env.path;
      // Parts of a page's head are rendered without a path. They have no links.
      if (typeof file !== 'string') return;
      const page = relative(ROOT, file);
      for (const token of tokens) for (const child of token.children ?? []) relink(child, page, base);
      tokens.forEach(plainIfEmpty);
      tokens.forEach(figureIfDiagram);
    });
    const { table_open: open, table_close: close } = md.renderer.rules;
    // A table that is wider than the screen scrolls in its own box, also by keyboard.
    md.renderer.rules.table_open = (tokens, index, options, env, self) =>
      `<div class="table" tabindex="0" role="group" aria-label="Table">${open?.(tokens, index, options, env, self) ?? '<table>'}\n`;
    md.renderer.rules.table_close = (tokens, index, options, env, self) =>
      `${close?.(tokens, index, options, env, self) ?? '</table>'}</div>\n`;
  };
}

/** A header cell without a word is a header of nothing: it becomes a plain cell. */
function plainIfEmpty(token: Token, index: number, tokens: readonly Token[]): void {
  if (token.type !== 'th_open' || tokens[index + 1]?.content !== '') return;
  token.tag = 'td';
  const end = tokens[index + 2];
  if (end?.type === 'th_close') end.tag = 'td';
}

/** A paragraph that is only a diagram: on a phone it scrolls, also by keyboard. */
function figureIfDiagram(token: Token, index: number, tokens: readonly Token[]): void {
  const [image, more] = tokens[index + 1]?.children ?? [];
  if (token.type !== 'paragraph_open' || image?.type !== 'image' || more !== undefined) return;
  if (!image.attrGet('src')?.endsWith('.svg')) return;
  for (const [name, value] of [
    ['class', 'figure'],
    ['tabindex', '0'],
    ['role', 'group'],
    ['aria-label', 'Figure'],
  ] as const)
    token.attrSet(name, value);
}

function relink(token: Token, page: string, base: string): void {
  if (token.type !== 'link_open') return;
  const href = token.attrGet('href') ?? '';
  // The link of a heading to itself.
  if (token.attrGet('class') === 'header-anchor') return;
  if (href.startsWith('#') && page.startsWith(API)) token.attrSet('href', anchorOfApi(page, href));
  const target = targetOf(href, page);
  if (target === undefined) return;
  const { file, hash, isPage } = target;
  if (isPage) {
    token.attrSet('href', `${addressOf(file)}${file.startsWith(API) ? anchorOfApi(file, hash) : hash}`);
    return;
  }
  linkedFiles.add(file);
  token.attrSet('href', `${base.replace(/\/$/, '')}${addressOfFile(file)}`);
  // Without a target, VitePress takes a file without an extension for a page.
  token.attrSet('target', '_self');
}

interface ApiPage {
  readonly text: string;
  readonly anchors: ReadonlySet<string>;
}

/** Pages of the API reference that links led to: one page has hundreds of links to itself. */
const apiPages = new Map<string, ApiPage>();

function apiPageOf(file: string): ApiPage {
  const known = apiPages.get(file);
  if (known !== undefined) return known;
  const text = readFileSync(join(ROOT, file), 'utf8');
  const counts = new Map<string, number>();
  const anchors = new Set<string>();
  for (const [, heading] of text.matchAll(/^#+ (.+)$/gm)) {
    const slug = slugify(heading as string);
    const count = counts.get(slug) ?? 0;
    counts.set(slug, count + 1);
    anchors.add(count === 0 ? `#${slug}` : `#${slug}-${count}`);
  }
  const page = { text, anchors };
  apiPages.set(file, page);
  return page;
}

/** TypeDoc numbers some anchors that are unique, and writes `max-recent` for `MAX_RECENT`. */
function anchorOfApi(file: string, hash: string): string {
  const { text, anchors } = apiPageOf(file);
  if (anchors.has(hash) || text.includes(`id="${hash.slice(1)}"`)) return hash;
  const others = [hash.replace(/-\d+$/, ''), hash.replaceAll('-', '_')];
  return others.find((other) => anchors.has(other)) ?? hash;
}
