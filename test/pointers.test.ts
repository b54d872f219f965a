import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, extname, join, relative } from 'node:path';
import { namesOf, ROOT, read, rowsOf } from 'headgate-testbed/docs';
import { describe, expect, it } from 'vitest';

/** Folders that npm, a build or a test makes. */
const MADE = [
  'node_modules',
  'dist',
  'dist.new',
  'dist.old',
  'reports',
  'coverage',
  'data',
  '.git',
  '.examples',
  '.run',
];

/** Every file of the repository, as a path in it. */
const FILES = filesOf('.');

/** Every path by which a comment can name one of them: `stores/redis/limits.ts`, `limits.ts`. */
const NAMES = new Set(FILES.flatMap((file) => file.split('/').map((_, i, folders) => folders.slice(i).join('/'))));

function filesOf(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return MADE.includes(entry.name) ? [] : filesOf(path);
    return [path];
  });
}

describe('links in pages', () => {
  // The API reference is made by TypeDoc.
  const pages = FILES.filter((file) => file.endsWith('.md') && !file.startsWith('apps/site/api/'));
  const proseOf = (page: string): string => read(page).replace(/^```.*?^```/gms, '');
  /** As GitHub makes an anchor of a heading. */
  const anchorsOf = (page: string): string[] =>
    [...proseOf(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    );

  it.each(pages)('%s: every link leads to a file and a heading', (page) => {
    const broken = [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target]) => target as string)
      // A page of the site may link to an address of the site.
      .filter((target) => !/^(\w+:|\/)/.test(target))
      .filter((target) => {
        const [path, anchor] = target.split('#');
        const file = path ? join(dirname(page), path) : page;
        if (!existsSync(join(ROOT, file))) return true;
        return anchor !== undefined && file.endsWith('.md') && !anchorsOf(file).includes(anchor);
      });
    expect(broken).toEqual([]);
  });

  it('anchors in code lead to a heading', () => {
    const broken = FILES.filter((file) => /\.(tsx?|mjs|lua)$/.test(file)).flatMap((file) =>
      [...read(file).matchAll(/\b((?:apps|docs|packages)\/[\w./-]+\.md)#([\w-]+)/g)]
        .filter(([, page = '', anchor = '']) => !existsSync(join(ROOT, page)) || !anchorsOf(page).includes(anchor))
        .map(([pointer]) => `${file}: ${pointer}`),
    );
    expect(broken).toEqual([]);
  });
});

it('numbers of decisions that a file cites are rows', () => {
  const rows = ['docs/decisions.md', 'apps/gateway/docs/decisions.md'].flatMap((page) =>
    [...read(page).matchAll(/^\| (\d+) \|/gm)].map(([, number]) => number),
  );
  expect(new Set(rows).size).toBe(rows.length);
  // The service numbers its decisions itself.
  const citing = FILES.filter(
    (file) => /\.(tsx?|mjs|lua|md)$/.test(file) && !/communication-api|docs\/service/.test(file),
  );
  const dead = citing.flatMap((file) =>
    [...read(file).matchAll(/\bdecision (\d+)\b(?= in |\))/gi)]
      .filter(([, number]) => !rows.includes(number as string))
      .map(([citation]) => `${file}: ${citation}`),
  );
  expect(dead).toEqual([]);
});

describe('names of files in comments', () => {
  const COMMENTS: Record<string, RegExp> = {
    '.lua': /--\[\[[\s\S]*?\]\]|--[^\n]*/g,
    '.sql': /--[^\n]*/g,
    '.ts': /\/\*[\s\S]*?\*\/|(?<![:'"`\w\\])\/\/[^\n]*/g,
  };
  const FILE_NAME =
    /(?<![\w@./:-])(?:\.{1,2}\/)*\w[\w.-]*(?:\/[\w.-]+)*\.(?:tsx?|mjs|cjs|lua|md|sql|pml|vue|yml|h)\b(?![\w(])/g;

  const comments = FILES.filter((file) => /\.(tsx?|mjs|vue|lua|sql)$/.test(file)).flatMap((file) =>
    [...read(file).matchAll(COMMENTS[extname(file)] ?? (COMMENTS['.ts'] as RegExp))].map(([text]) => ({ file, text })),
  );
  const exists = (file: string, name: string): boolean =>
    NAMES.has(name) || existsSync(join(ROOT, dirname(file), name));

  it('exist', () => {
    const named = comments.flatMap(({ file, text }) => [...text.matchAll(FILE_NAME)].map(([name]) => ({ file, name })));
    expect(named.length).toBeGreaterThan(100);
    // NAME is the reader's own; the site makes index.md of README.md.
    const dead = named
      .filter(({ name }) => basename(name) !== 'index.md' && !/name\./i.test(basename(name)))
      .filter(({ file, name }) => !exists(file, name));
    expect(dead.map(({ file, name }) => `${file}: ${name}`)).toEqual([]);
  });

  it('whose top shall have a comment begin with one', () => {
    const wrong = comments.flatMap(({ file, text }) =>
      [...text.matchAll(/comment at the top of ([\w./-]+\w)/g)]
        .flatMap(([, name = '']) => FILES.filter((one) => one.endsWith(`/${name}`)))
        .filter((target) => !/^\s*(\/[*/]|--)/.test(read(target)))
        .map((target) => `${file}: ${target}`),
    );
    expect(wrong).toEqual([]);
  });
});

describe('CONTRIBUTING.md', () => {
  const text = read('CONTRIBUTING.md');

  it('names files and scripts that exist', () => {
    const paths = [...text.matchAll(/`((?:apps|bench|docs|packages|scripts|src|test)\/[\w./-]+)`/g)].map(
      ([, path]) => path as string,
    );
    expect(paths.length).toBeGreaterThan(40);
    // NAME is the reader's own.
    const missing = paths.filter((path) => !path.includes('NAME') && !existsSync(join(ROOT, path)));
    expect(missing).toEqual([]);
    const { scripts } = JSON.parse(read('package.json'));
    const used = [...text.matchAll(/npm run ([\w:]+)/g)].map(([, script]) => script as string);
    expect([...new Set(used)].filter((script) => !(script in scripts))).toEqual([]);
  });

  it('names every house', () => {
    const houses = ['apps', 'packages'].flatMap((street) =>
      readdirSync(join(ROOT, street)).map((house) => `${street}/${house}`),
    );
    expect(namesOf(rowsOf('CONTRIBUTING.md', 'house')).sort()).toEqual(
      ['src', 'test', 'bench', 'docs', ...houses].sort(),
    );
  });

  const HOUSES = ['src', 'apps/gateway/src', 'apps/gateway/src/console', 'apps/communication-api/src', 'apps/site'];

  it.each(HOUSES)('says what each room of %s is', (house) => {
    const rooms = FILES.map((file) => relative(house, file))
      .filter((file) => !file.startsWith('.') && file.includes('/'))
      .map((file) => file.split('/')[0] as string)
      .filter((room) => !(house === 'apps/site' && room === 'api'));
    expect(namesOf(rowsOf('CONTRIBUTING.md', `room of ${house}`)).sort()).toEqual([...new Set(rooms)].sort());
  });

  it('knows every house with rooms', () => {
    const sources = ['apps', 'packages'].flatMap((street) =>
      readdirSync(join(ROOT, street)).map((house) => `${street}/${house}/src`),
    );
    const withRooms = sources.filter((source) =>
      FILES.some((file) => relative(source, file).includes('/') && file.startsWith(`${source}/`)),
    );
    expect(HOUSES).toEqual(expect.arrayContaining(withRooms));
  });

  it('says where ten usual things belong', () => {
    expect(rowsOf('CONTRIBUTING.md', 'a new …').map(([thing]) => thing)).toEqual([
      'header field',
      'rule',
      'Redis command',
      'console column',
      'log reader',
      'page of the site',
      'mail provider',
      'adapter',
      'metric',
      'error text',
    ]);
  });
});
