/**
 * Tests the packed package in every runtime: `npm run test:runtimes`. To run some of them:
 * `node test/runtimes/run.mjs bun workerd -- fetch`; `next`, `sveltekit` and `react-router` are applications of these
 * frameworks. It prints a table of cases passed, failed and left out, and exits with 1 if a case failed. It needs Linux
 * on x64, and installs the runtimes.
 */
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { bundleSuite } from './bundle.mjs';
import { NEXT_APPS } from './next.mjs';
import { run } from './process.mjs';
import { REACT_ROUTER_APPS } from './react-router.mjs';
import { RUNTIMES } from './runtimes.mjs';
import { GAPS, SUITES } from './suites.mjs';
import { SVELTEKIT_APPS } from './sveltekit.mjs';

const APPS = [...NEXT_APPS, ...SVELTEKIT_APPS, ...REACT_ROUTER_APPS];

/** Time limit of one suite in one runtime. Each takes a few seconds. */
const DEADLINE_MS = 120_000;
const INSTALL_MS = 600_000;

const HERE = import.meta.dirname;
const ROOT = resolve(HERE, '../..');
/**
 * A folder like that of a user's program: the package is in its `node_modules`, everything else is in those further up.
 */
const PLACE = join(HERE, '.run');

if (process.platform !== 'linux' || process.arch !== 'x64')
  throw new Error('the runtimes can be installed only on Linux on x64');
const [runtimes, apps, suiteWords] = choices(process.argv.slice(2));
await install();
await pack();
const rows = [];
/** Reason → suite → runtimes. */
const notes = {};
let failures = 0;
for (const suite of SUITES.filter(
  ({ name }) => suiteWords === undefined || suiteWords.some((word) => name.includes(word)),
)) {
  const cells = [];
  for (const runtime of runtimes) cells.push(await runCell(suite, runtime));
  rows.push([suite.name, ...cells]);
}
if (runtimes.length > 0) print();
for (const app of apps) {
  const { passed, failed } = await app.run(PLACE);
  report(failed, app.name);
  console.log(`${app.name}: ${passed.length}/${failed.length}`);
}
process.exitCode = failures > 0 ? 1 : 0;

/** Chooses runtimes and suites by words of their names; without words, all of them. */
function choices(words) {
  const end = words.indexOf('--');
  const [before, after] = end < 0 ? [words, undefined] : [words.slice(0, end), words.slice(end + 1)];
  const isChosen = ({ name }) => before.length === 0 || before.some((word) => name.includes(word));
  return [RUNTIMES.filter(isChosen), after === undefined ? APPS.filter(isChosen) : [], after];
}

async function install() {
  const folders = new Set([...(runtimes.length > 0 ? [HERE] : []), ...apps.map(({ packages }) => packages)]);
  for (const cwd of folders) {
    if (existsSync(join(cwd, 'node_modules'))) continue;
    console.log(`installing ${relative(ROOT, cwd)}, up to 1 GB …`);
    // For frameworks, npm 11 writes lock files that its own `npm ci` rejects: they miss optional packages of other systems.
    const how = cwd === HERE ? ['ci'] : ['install', '--no-package-lock'];
    await run('npm', [...how, '--ignore-scripts'], { cwd, signal: AbortSignal.timeout(INSTALL_MS) });
  }
}

async function pack() {
  const signal = AbortSignal.timeout(INSTALL_MS);
  const installed = join(PLACE, 'node_modules/headgate');
  rmSync(PLACE, { recursive: true, force: true });
  mkdirSync(installed, { recursive: true });
  // The script `prepack` builds the package.
  await run('npm', ['pack', '--silent', '--pack-destination', PLACE], { cwd: ROOT, signal });
  const [archive] = readdirSync(PLACE).filter((name) => name.endsWith('.tgz'));
  await run('tar', ['-xzf', join(PLACE, archive), '--strip-components=1', '-C', installed], { cwd: PLACE, signal });
}

/** Runs a suite in a runtime, and returns its cell of the table. */
async function runCell(suite, { name, kind, run: runIn }) {
  if (!suite.kinds.includes(kind)) {
    note(suite.why, suite.name, name);
    return '–';
  }
  const { passed, failed, leftOut } = await reportOf(suite, kind, runIn);
  report(failed, `${name}, ${suite.name}`);
  for (const { reason } of leftOut) note(reason, suite.name, name);
  return `${passed.length}/${failed.length}/${leftOut.length}`;
}

function report(failed, where) {
  failures += failed.length;
  for (const { name, error } of failed) console.error(`\nFAILED in ${where}: ${name}\n  ${error}`);
}

function note(reason, suite, runtime) {
  notes[reason] ??= {};
  notes[reason][suite] ??= new Set();
  notes[reason][suite].add(runtime);
}

async function reportOf(suite, kind, runIn) {
  const signal = AbortSignal.timeout(DEADLINE_MS);
  try {
    const gaps = GAPS[kind]?.[suite.name] ?? {};
    return await runIn(await bundleSuite(suite, { kind, gaps, folder: PLACE }), signal);
  } catch (error) {
    const late = signal.aborted ? `no report within ${DEADLINE_MS} ms; ` : '';
    return { passed: [], failed: [{ name: 'the whole suite', error: late + error }], leftOut: [] };
  }
}

function print() {
  const table = [['passed/failed/left out', ...runtimes.map(({ name }) => name)], ...rows];
  const widths = table[0].map((_, column) => Math.max(...table.map((row) => row[column].length)));
  for (const row of table) console.log(row.map((cell, column) => cell.padEnd(widths[column])).join('  '));
  for (const [reason, suites] of Object.entries(notes)) {
    const where = Object.entries(suites).map(([suite, names]) => `${suite} (${[...names].join(', ')})`);
    console.log(`\nleft out, because ${reason}:\n  ${where.join('\n  ')}`);
  }
}
