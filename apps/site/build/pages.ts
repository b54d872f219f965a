import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository: pages are named by their path in it. */
export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** Pages on top of the repository or of a house. The README of the root is the home page in another form. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'README.md': 'index.md',
  'CONTRIBUTING.md': 'contributing.md',
  'CHANGELOG.md': 'changelog.md',
  'SECURITY.md': 'security.md',
};

/** The folders whose Markdown files are pages, and where the site has them. */
const FOLDERS: Readonly<Record<string, string>> = {
  docs: 'docs/',
  'packages/simulate/docs': 'docs/',
  'apps/gateway/docs': 'docs/gateway/',
  'apps/communication-api/docs': 'docs/service/',
  'apps/site/pages': '',
};

/** The API reference, which TypeDoc writes. */
export const API = 'apps/site/api/';

/** The globs of all Markdown that is not a page of the site. */
export const NO_PAGES = [
  '{.changeset,.ci,.github,bench,coverage,data,dist,node_modules,reports,scripts,src,test}/**',
  '{apps,packages}/*/!(docs|pages|api|README.md)/**',
  '{apps,packages}/*/README.md',
  'README.md',
];

/** The path of a page in the site: `docs/adapters/README.md` becomes `docs/adapters/index.md`. */
export function placeOf(file: string): string {
  const folder = Object.keys(FOLDERS).find((one) => file.startsWith(`${one}/`));
  const place = folder === undefined ? file : FOLDERS[folder] + file.slice(folder.length + 1);
  return ELSEWHERE[file] ?? place.replace(API, 'api/').replace(/(^|\/)README\.md$/, '$1index.md');
}

/** The address of a page without its end: `docs/guide.md` has `/docs/guide`, `docs/README.md` has `/docs/`. */
export function addressOf(file: string): string {
  return `/${placeOf(file)
    .replace(/(^|\/)index\.md$/, '$1')
    .replace(/\.md$/, '')}`;
}

/** The first heading of a page, without its marks. */
export function titleOf(file: string): string {
  const heading = /^# (.+)$/m.exec(readFileSync(join(ROOT, file), 'utf8'));
  if (!heading) throw new Error(`${file}: a page needs a first heading, "# …"`);
  return (heading[1] as string).replaceAll('`', '');
}

/** A link of a page to something in the repository. */
export interface Target {
  /** Path in the repository. */
  readonly file: string;
  /** `#anchor`, or nothing. */
  readonly hash: string;
  readonly isPage: boolean;
}

/**
 * What a link means, or undefined if it does not leave its page or leads outside.
 * @throws Error if the repository has no such file
 */
export function targetOf(link: string, page: string): Target | undefined {
  if (/^(?:[a-z][a-z\d+.-]*:|#|\/)/i.test(link)) return undefined;
  const [path = '', hash] = decodeURI(link).split('#', 2);
  const file = relative(ROOT, resolve(dirname(join(ROOT, page)), path));
  if (file.startsWith('..') || !existsSync(join(ROOT, file))) {
    throw new Error(`${page}: the link "${link}" leads to ${file}, which does not exist`);
  }
  return { file, hash: hash === undefined ? '' : `#${hash}`, isPage: isPage(file) };
}

/** Other Markdown files are copied as they are. */
const isPage = (file: string): boolean =>
  file === 'README.md' || PAGES.includes(file) || (file.startsWith(API) && file.endsWith('.md'));

/** Every page of the repository that the site has, without the generated API reference. */
export const PAGES: readonly string[] = [
  ...Object.keys(ELSEWHERE).filter((file) => file !== 'README.md'),
  ...Object.keys(FOLDERS).flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.md'))
      .map((file) => `${folder}/${file}`),
  ),
];
