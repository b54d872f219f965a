/** Vitest runs a file only if a pattern of a project has it, and more than once if those of several do. */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '..');
/** Folders that are made, and the site, which installs packages of its own: `npm run site:check` runs its tests. */
const NOT_SEARCHED = /^(\..*|node_modules|dist|reports|coverage)$|^apps\/site$/;

const PROJECTS = await projectsOf({});
const NIGHTLY_PROJECTS = await projectsOf({ HEADGATE_NIGHTLY: '1' });
const FILES = testFilesIn(ROOT);

/** @returns the projects that run a file, by its path from the root */
async function projectsOf(environment: Record<string, string>): Promise<ReadonlyMap<string, string[]>> {
  const { HEADGATE_NIGHTLY: _, ...inherited } = process.env;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['node_modules/vitest/vitest.mjs', 'list', '--filesOnly', '--json'],
    { cwd: ROOT, env: { ...inherited, ...environment }, maxBuffer: 16_777_216 },
  );
  const projects = new Map<string, string[]>();
  for (const { file, projectName } of JSON.parse(stdout) as { file: string; projectName: string }[]) {
    const path = relative(ROOT, file);
    projects.set(path, [...(projects.get(path) ?? []), projectName].sort());
  }
  return projects;
}

function testFilesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (NOT_SEARCHED.test(entry.name) || NOT_SEARCHED.test(relative(ROOT, path))) return [];
    if (entry.isDirectory()) return testFilesIn(path);
    return /\.test\.tsx?$/.test(entry.name) ? [relative(ROOT, path)] : [];
  });
}

it('the nightly run has every test file, once; some run on a second store: PostgreSQL', () => {
  expect([...NIGHTLY_PROJECTS.keys()].sort()).toEqual(FILES.sort());
  const several = [...NIGHTLY_PROJECTS.values()].filter((projects) => projects.length > 1);
  expect([...new Set(several.map(String))].sort()).toEqual([
    'gateway-postgres,gateway-process',
    'gateway-postgres,gateway-redis',
    'service,service-postgres',
  ]);
});

it('a change waits for every test file but those named nightly, of the benchmarks and of the model', () => {
  const expected = FILES.filter(
    (file) => !/\.nightly\.test\.tsx?$|(?:^|\/)test\/(bench|model)\/|^packages\/bench\//.test(file),
  );
  expect([...PROJECTS.keys()].sort()).toEqual(expected.sort());
});

it('npm run test:library runs the projects of the library, and no other', () => {
  const ofLibrary = [...PROJECTS].filter(([path]) => path.startsWith('test/')).flatMap(([, projects]) => projects);
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const named = [...scripts['test:library'].matchAll(/--project (\S+)/g)].map(([, name]) => name);
  expect(named.sort()).toEqual([...new Set(ofLibrary)].sort());
});
