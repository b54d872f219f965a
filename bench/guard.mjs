// npm run bench:guard: is the working tree slower than a base revision? It builds both, runs the same workloads on both
// in fresh processes that take turns, and fails if a ratio is above a limit.
//
//   --base REV        default: the merge base with the last tag, or HEAD~1
//   --ratio 1.15      the limit
//   --rounds 9
//   --only "consumeSync, accepted"
//   --instructions    counts instructions instead of CPU time, for noisy machines
//
// Without a tag the base is the commit before. Then many small slowdowns, each below the limit, add up unseen: pass an
// older --base from time to time.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { inFreshProcess } from 'headgate-bench/fresh-process';
import { numberOption, usageError } from 'headgate-bench/options';
import { endProgress, progress } from 'headgate-bench/progress';
import { inRounds } from 'headgate-bench/rounds';
import { guardReport } from './support/guard-report.mjs';
import { GUARDED } from './support/guard-workloads.mjs';
import { instructionCounter } from './support/instructions.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const WORKER = fileURLToPath(new URL('./support/guard-worker.mjs', import.meta.url));
/** The build does not need these folders. */
const NOT_COPIED = new Set(['node_modules', '.git', 'dist', 'coverage', 'reports', 'bench', 'docs', 'test']);
/**
 * Instructions are counted over about this much work, within bounds: after fewer calls the compiler may still be busy.
 */
const COUNTED_NS = 20e6;
const COUNTED_CALLS = { least: 5_000, most: 100_000 };

const { values } = parseArgs({
  options: {
    base: { type: 'string' },
    ratio: { type: 'string', default: '1.15' },
    rounds: { type: 'string' },
    only: { type: 'string' },
    instructions: { type: 'boolean', default: false },
  },
});
const limit = numberOption(values, 'ratio');
const wantedRounds = numberOption(values, 'rounds', true);
const chosen = Object.keys(GUARDED).filter((name) => values.only === undefined || name === values.only);
if (chosen.length === 0)
  usageError(`--only: unknown workload "${values.only}" (expected one of: ${Object.keys(GUARDED).join('; ')})`);
const git = (...args) =>
  execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
const base = git('rev-parse', '--short', values.base ?? defaultBase());

const folder = mkdtempSync(join(tmpdir(), 'headgate-guard-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
process.once('SIGINT', () => process.exit(130));

const counter = values.instructions ? instructionCounter() : undefined;
const rounds = wantedRounds ?? counter?.rounds ?? 9;
const contestants = [
  { name: 'base', dist: build('base', unpackBase) },
  { name: 'head', dist: build('head', copyTree) },
];
const figures = await inRounds({
  rounds,
  workloads: chosen.map((name) => ({ name, contestants, calls: counter && callsOf(name, contestants[0].dist) })),
  progress,
  measure: ({ dist }, { name, calls }, isWarmUp) => {
    // Every measurement is a fresh process, which warms up by itself.
    if (isWarmUp) return undefined;
    return counter ? { cost: counted(counter, dist, name, calls) } : timed(name, dist);
  },
});
endProgress();
const { text, isSlower } = guardReport({ figures, limit, base, rounds, unit: counter ? 'instructions' : 'CPU ns' });
console.log(text);
if (isSlower) process.exitCode = 1;

function timed(workload, dist) {
  return inFreshProcess(new URL('support/guard-worker.mjs', import.meta.url), [dist, workload]);
}

function defaultBase() {
  try {
    const mergeBase = git('merge-base', 'HEAD', git('describe', '--tags', '--abbrev=0'));
    return mergeBase === git('rev-parse', 'HEAD') ? 'HEAD~1' : mergeBase;
  } catch {
    // The repository has no tag yet.
    return 'HEAD~1';
  }
}

/** @returns the path of its dist folder */
function build(side, fill) {
  progress(`building ${side}`);
  const place = join(folder, side);
  mkdirSync(place);
  fill(place);
  symlinkSync(realpathSync(join(ROOT, 'node_modules')), join(place, 'node_modules'));
  execFileSync(process.execPath, [join(ROOT, 'node_modules/tsup/dist/cli-default.js'), '--silent', '--no-dts'], {
    cwd: place,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return join(place, 'dist');
}

function unpackBase(place) {
  const archive = execFileSync('git', ['archive', base], { cwd: ROOT, maxBuffer: 1 << 28 });
  execFileSync('tar', ['-x', '-C', place], { input: archive });
}

/** Copies uncommitted changes as well, because they are what a developer wants to measure. */
function copyTree(place) {
  cpSync(ROOT, place, { recursive: true, filter: (from) => !NOT_COPIED.has(relative(ROOT, from).split('/')[0]) });
}

/** Instructions per call of warm code: the second half of twice as many calls. */
function counted({ count }, dist, workload, calls) {
  const countCalls = (amount) => count(['--single-threaded', WORKER, dist, workload, String(amount)]);
  return (countCalls(2 * calls) - countCalls(calls)) / calls;
}

function callsOf(workload, dist) {
  const calls = Math.round(COUNTED_NS / timed(workload, dist).cost);
  return Math.min(Math.max(calls, COUNTED_CALLS.least), COUNTED_CALLS.most);
}
