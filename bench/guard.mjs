// npm run bench:guard: is the working tree slower than a base revision? Both are built, the same workloads run on both in fresh processes, in turns; fails past a ratio.
// --base REV (the last tag's merge base, else HEAD~1) --ratio 1.15 --rounds 9 --only "consumeSync, accepted" --instructions (counts them, where times are noisy)
// Without a tag the base is the commit before: many small slowdowns, each under the ratio, then pile up unseen. Name an older --base now and then.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { inFreshProcess } from './support/fresh-process.mjs';
import { guardReport } from './support/guard-report.mjs';
import { GUARDED } from './support/guard-workloads.mjs';
import { instructionCounter } from './support/instructions.mjs';
import { numberOption, refuse } from './support/options.mjs';
import { endProgress, progress } from './support/progress.mjs';
import { inRounds } from './support/rounds.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const WORKER = fileURLToPath(new URL('./support/guard-worker.mjs', import.meta.url));
/** Nothing of these is built. */
const BESIDE = new Set(['node_modules', '.git', 'dist', 'coverage', 'reports', 'bench', 'docs', 'test']);
/** Instructions are counted over about so much work, and in calls enough for the compiler to be done. */
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
if (chosen.length === 0) refuse(`--only ${values.only}: there are ${Object.keys(GUARDED).join('; ')}`);
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
    // Each is a fresh process, and warms up by itself.
    if (isWarmUp) return undefined;
    return counter ? { cost: counted(counter, dist, name, calls) } : timed(name, dist);
  },
});
endProgress();
const { text, isSlower } = guardReport({ figures, limit, base, rounds, unit: counter ? 'instructions' : 'CPU ns' });
console.log(text);
if (isSlower) process.exitCode = 1;

function timed(workload, dist) {
  return inFreshProcess('support/guard-worker.mjs', [dist, workload]);
}

function defaultBase() {
  try {
    const mergeBase = git('merge-base', 'HEAD', git('describe', '--tags', '--abbrev=0'));
    return mergeBase === git('rev-parse', 'HEAD') ? 'HEAD~1' : mergeBase;
  } catch {
    // No tag yet.
    return 'HEAD~1';
  }
}

/** @returns the folder of its dist */
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

/** Changes that are not committed count: they are what one wants to know of. */
function copyTree(place) {
  cpSync(ROOT, place, { recursive: true, filter: (from) => !BESIDE.has(relative(ROOT, from).split('/')[0]) });
}

/** Of a call once the code is warm: twice as many calls, less as many. */
function counted({ count }, dist, workload, calls) {
  const of = (times) => count(['--single-threaded', WORKER, dist, workload, String(times * calls)]);
  return (of(2) - of(1)) / calls;
}

function callsOf(workload, dist) {
  const calls = Math.round(COUNTED_NS / timed(workload, dist).cost);
  return Math.min(Math.max(calls, COUNTED_CALLS.least), COUNTED_CALLS.most);
}
