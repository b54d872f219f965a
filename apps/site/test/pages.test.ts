import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { play } from '../playground/history.ts';
import { isFault, readLimits } from '../playground/limits.ts';
import { FIRST } from '../playground/presets.ts';
import { axeFaults, useSite, type Watched } from './support/browser.ts';
import { DIST, fileOf } from './support/serve.ts';

const FILES = readdirSync(DIST, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.html'))
  .sort();
const pathOf = (file: string): string => `/${file.replace(/(^|\/)index\.html$/, '$1').replace(/\.html$/, '')}`;
const html = new Map(FILES.map((file) => [file, readFileSync(join(DIST, file), 'utf8')]));

describe('the built site', () => {
  it('has every page of docs, the reference of every subpath, and a page for what does not exist', () => {
    expect(FILES).toEqual(expect.arrayContaining(['index.html', '404.html', 'playground.html', 'changelog.html']));
    expect(FILES.filter((file) => file.startsWith('docs/')).length).toBeGreaterThan(50);
    expect(FILES.filter((file) => file.startsWith('api/')).length).toBeGreaterThan(20);
  });

  it('has no link to a file or an anchor that does not exist', () => {
    const dead = FILES.flatMap((file) =>
      [...(html.get(file) ?? '').matchAll(/ href="([^"]+)"/g)]
        .map(([, href]) => (href as string).replaceAll('&amp;', '&'))
        .filter((href) => !/^(?:https?:|mailto:|data:)/.test(href) && isDead(file, href))
        .map((href) => `${file}: ${href}`),
    );
    expect([...new Set(dead)]).toEqual([]);
  });

  it('begins with the program of the README, which the tests of the repository run', () => {
    const read = (file: string): string => readFileSync(join(import.meta.dirname, '../../..', file), 'utf8');
    const program = /```ts\n.*?```/s.exec(read('README.md'))?.[0] as string;
    expect(read('apps/site/pages/index.md')).toContain(program);
  });

  it('shows an answer on its first page that the limiter gives', () => {
    const { current, moments } = FIRST;
    const [limits, rejected] = [readLimits({ ...current, allMethods: '3/10s' }), moments.indexOf(10_000)];
    if (isFault(limits)) throw new Error(limits.message);
    const fields = Object.entries(play({ limits }, moments)[rejected]?.fields ?? {});
    const picture = /<svg class="hero-picture".*?<\/svg>/s.exec(html.get('index.html') ?? '')?.[0] ?? '';
    const shown = [...picture.matchAll(/>\s*([a-z-]+): <tspan[^>]*>(\d+)/g)].map(([, name, value]) => [name, value]);
    expect(shown).toEqual(fields);
  });

  it('lists every page that the sidebar has in llms.txt, beside its Markdown', () => {
    const links = [...readFileSync(join(DIST, 'llms.txt'), 'utf8').matchAll(/\]\(\/([^)]+)\): (.*)/g)];
    expect(links.length).toBeGreaterThan(50);
    for (const [, file, purpose] of links) {
      expect(fileOf(file as string), file).toBeDefined();
      expect(purpose?.length, file).toBeGreaterThan(15);
    }
  });
});

function isDead(file: string, href: string): boolean {
  const [path = '', anchor] = decodeURI(href).split('#', 2);
  const target = path === '' ? join(DIST, file) : fileOf(path.startsWith('/') ? path : join('/', dirname(file), path));
  if (target === undefined) return true;
  const text = html.get(relative(DIST, target));
  return anchor !== undefined && anchor !== '' && text !== undefined && !text.includes(`id="${anchor}"`);
}

describe('in a browser', () => {
  const site = useSite();

  /** Tabs that no test uses: each test takes one and gives it back. */
  const tabs: Watched[] = [];

  // Two at a time: one page loads while axe looks at the other.
  it.concurrent.for(FILES)(
    '%s has no error, no outside request and no accessibility finding',
    async (file, { expect }) => {
      const tab = tabs.pop() ?? (await site.openPage());
      const { page } = tab;
      await tab.open(pathOf(file));
      expect.soft(await page.locator('h1').count()).toBe(1);
      // Text may be wide, such as a table, but then it scrolls in a box of its own.
      for (const width of [375, 1280]) {
        await page.setViewportSize({ width, height: 900 });
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        expect.soft([width, Math.max(0, overflow)]).toEqual([width, 0]);
      }
      expect.soft(await axeFaults(page)).toEqual([]);
      const faults = (await tab.faults()).filter((fault) => file !== '404.html' || !/\b404\b/.test(fault));
      expect.soft(faults).toEqual([]);
      tabs.push(tab);
    },
  );
});
