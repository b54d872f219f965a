import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig, type SiteConfig } from 'vitepress';
import { writeLlmsTxt } from '../build/llms.ts';
import { addressOfFile, linkedFiles, repositoryMarkdown, slugify } from '../build/markdown.ts';
import { NAV, sidebar } from '../build/navigation.ts';
import { packageAliases } from '../build/package-aliases.ts';
import { NO_PAGES, PAGES, placeOf, ROOT } from '../build/pages.ts';

/** Where the site is served: `/` or a folder such as `/headgate/`. */
const BASE = process.env.SITE_BASE ?? '/';

/** The site's public address, such as `https://headgate.example`. Without one there is no sitemap and no canonical link. */
const ADDRESS = process.env.SITE_ADDRESS?.replace(/\/$/, '');

const DESCRIPTION =
  'Rate limits per account and idempotency keys for TypeScript, as middleware or as a gateway process.';

export default defineConfig({
  title: 'headgate',
  description: DESCRIPTION,
  lang: 'en',
  base: BASE,
  cleanUrls: true,
  srcDir: ROOT,
  srcExclude: [...NO_PAGES],
  rewrites: placeOf,
  outDir: fileURLToPath(new URL('../dist', import.meta.url)),
  cacheDir: fileURLToPath(new URL('./cache', import.meta.url)),
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: `${BASE}icon.svg` }]],
  ...(ADDRESS === undefined ? {} : { sitemap: { hostname: ADDRESS + BASE } }),
  transformHead: ({ page }) =>
    ADDRESS === undefined || page === '404.md'
      ? []
      : [
          [
            'link',
            { rel: 'canonical', href: ADDRESS + BASE + page.replace(/(^|\/)index\.md$/, '$1').replace(/\.md$/, '') },
          ],
        ],
  markdown: {
    anchor: { slugify },
    config: repositoryMarkdown(BASE),
    // The grammar of nginx is near enough: a directive, its values, and blocks in braces.
    languageAlias: { caddyfile: 'nginx' },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
  themeConfig: {
    nav: NAV,
    sidebar: sidebar(PAGES),
    outline: { level: [2, 3], label: 'On this page' },
    externalLinkIcon: true,
    search: {
      provider: 'local',
      options: {
        miniSearch: {
          searchOptions: {
            boost: { title: 6, titles: 2, text: 1 },
            // The pages that explain come first: not lists of links, pages about the inside, or the API reference. The
            // beginning of a page counts more than its sections, and more again if the page is named like the word that is
            // looked for. (This function runs in the reader's page.)
            boostDocument: (id, term, fields) => {
              const inside = /\/(api|changelog|contributing)/.test(id) ? 0.3 : 1;
              const special = /\/(service|decisions|claims|performance)|docs\/#/.test(id) ? 0.5 : 1;
              const titles = fields?.titles as readonly string[] | undefined;
              const name = /([^/#]*?)(\.html)?(#.*)?$/.exec(id)?.[1] || '/';
              const isNamed = inside === 1 && term.startsWith(name);
              return inside * special * (titles?.length === 0 ? 1.5 : 1) * (isNamed ? 4 : 1);
            },
          },
        },
      },
    },
  },
  vite: {
    publicDir: join(ROOT, 'apps/site/public'),
    resolve: {
      alias: packageAliases,
    },
    plugins: [
      {
        // The pages lie outside of this folder, where no `vue` is installed. VitePress runs the bundle from this folder.
        name: 'vue-for-pages',
        enforce: 'pre',
        resolveId: (id, _importer, { ssr }) =>
          ssr && /^vue(\/server-renderer)?$/.test(id) ? { id, external: true } : undefined,
      },
    ],
    build: { chunkSizeWarningLimit: 1_500 },
  },
  buildEnd: (site: SiteConfig) => {
    for (const file of linkedFiles) {
      const copy = join(site.outDir, addressOfFile(file));
      cpSync(join(ROOT, file), copy, { recursive: true });
    }
    writeLlmsTxt(site.outDir, ADDRESS === undefined ? BASE : ADDRESS + BASE, DESCRIPTION);
  },
});
