import { relative } from 'node:path';
import type { MarkdownRenderer } from 'vitepress';
import { addressOf, ROOT, targetOf } from './pages.ts';

type Token = ReturnType<MarkdownRenderer['parse']>[number];

/** Files of the repository that pages link to. The build copies them into the site. */
export const linkedFiles = new Set<string>();

/** Where the site has a file that is no page. */
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
    });
    const { table_open: open, table_close: close } = md.renderer.rules;
    // A table that is wider than the screen scrolls in its own box, also by keyboard.
    md.renderer.rules.table_open = (tokens, index, options, env, self) =>
      `<div class="table" tabindex="0" role="region" aria-label="Table">${open?.(tokens, index, options, env, self) ?? '<table>'}\n`;
    md.renderer.rules.table_close = (tokens, index, options, env, self) =>
      `${close?.(tokens, index, options, env, self) ?? '</table>'}</div>\n`;
  };
}

function relink(token: Token, page: string, base: string): void {
  if (token.type !== 'link_open') return;
  const target = targetOf(token.attrGet('href') ?? '', page);
  if (target === undefined) return;
  const { file, hash, isPage } = target;
  if (isPage) {
    token.attrSet('href', `${addressOf(file)}${hash}`);
    return;
  }
  linkedFiles.add(file);
  token.attrSet('href', `${base.replace(/\/$/, '')}${addressOfFile(file)}`);
  // Without a target, VitePress takes a file without an extension for a page.
  token.attrSet('target', '_self');
}
