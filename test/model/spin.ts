import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { findOrInstall, isOnPath } from 'headgate-testbed/find-program';

/** npm starts every command at the root of the repository. */
export const MODEL = resolve('docs/claim.pml');
export const LEASE_MODEL = resolve('docs/lease.pml');
export const TRACE_HEADER = resolve('test/model/trace.h');
/** The quotes are part of the macro, and reach the preprocessor through a shell. */
const TRACING = `-DTRACE=\\"${TRACE_HEADER}\\"`;
const MAX_OUTPUT = 1 << 28;

/**
 * SPIN: SPIN_BIN, the one on the PATH, or Debian's package, if this process may install it.
 * @throws Error if there is none, or no C compiler, which SPIN needs
 */
export function findSpin(): string {
  findOrInstall(
    () => (isOnPath('gcc') ? 'gcc' : undefined),
    'gcc',
    'SPIN needs the C compiler gcc on the PATH: install gcc.',
  );
  return (
    process.env.SPIN_BIN ??
    findOrInstall(
      () => (hasSpin() ? 'spin' : undefined),
      'spin',
      'The checks of the model need SPIN 6.5: install spin, or set SPIN_BIN.',
    )
  );
}

function hasSpin(): boolean {
  try {
    return execFileSync('spin', ['-V'], { encoding: 'utf8' }).startsWith('Spin Version');
  } catch {
    return false;
  }
}

/** What the verifier found. */
export interface Verdict {
  readonly errors: number;
  readonly states: number;
  /** The first violated assertion or invalid end state. */
  readonly violation: string | undefined;
}

/** Searches every order of events of the model with these options, such as `N=2`. */
export function verify(spin: string, options: readonly string[], model = MODEL, depth = 100_000): Verdict {
  return inFolder((folder) => {
    buildVerifier(spin, folder, options.map(macro), ['-O2', '-w', '-DSAFETY', '-DCOLLAPSE'], model);
    const output = runVerifier(folder, [`-m${depth}`]);
    const errors = /errors: (\d+)/.exec(output)?.[1];
    const states = /(\S+) states, stored/.exec(output)?.[1];
    if (errors === undefined || states === undefined) throw new Error(`the verifier printed no result:\n${output}`);
    const violation = /^pan:1: (.*?)(?: \(at depth \d+\))?$/m.exec(output)?.[1];
    if (/max search depth too small|out of memory/.test(output)) throw new Error(`the search is not whole:\n${output}`);
    return { errors: Number(errors), states: Number(states), violation };
  });
}

/** The shortest traces to every kind of step that the model can reach. */
export function searchTraces(spin: string, options: readonly string[]): string[][] {
  return inFolder((folder) => {
    const macros = [...options.map(macro), '-DCOVER', TRACING];
    buildVerifier(spin, folder, macros, ['-O1', '-w', '-DSAFETY', '-DBFS']);
    runVerifier(folder, ['-e', '-c0']);
    const numberOf = (trail: string): number => Number(/pml(\d+)\.trail$/.exec(trail)?.[1]);
    const trails = readdirSync(folder).filter((name) => name.endsWith('.trail'));
    trails.sort((a, b) => numberOf(a) - numberOf(b));
    return trails.map((trail) => stepsOf(runVerifier(folder, ['-w10', '-r', trail])));
  });
}

/** The trace of one random run of the model. */
export function simulateTrace(spin: string, options: readonly string[], seed: number): string[] {
  return inFolder((folder) =>
    stepsOf(run(spin, [`-n${seed}`, '-u100000', ...options.map(macro), TRACING, MODEL], folder)),
  );
}

function macro(option: string): string {
  return `-D${option}`;
}

/** The lines that trace.h prints. */
function stepsOf(output: string): string[] {
  return output.split('\n').flatMap((line) => {
    const text = line.trim().replaceAll(/ +/g, ' ');
    return /^(C( \d+){17}|[LE] \d+)$/.test(text) ? [text] : [];
  });
}

function buildVerifier(
  spin: string,
  folder: string,
  macros: readonly string[],
  compiler: readonly string[],
  model = MODEL,
): void {
  run(spin, ['-a', ...macros, model], folder);
  run('gcc', [...compiler, '-o', 'pan', 'pan.c'], folder);
}

/** The verifier ends with a code that says nothing about its result. */
function runVerifier(folder: string, args: readonly string[]): string {
  return run(join(folder, 'pan'), args, folder, true);
}

function run(program: string, args: readonly string[], cwd: string, anyCode = false): string {
  try {
    return execFileSync(program, args, {
      cwd,
      encoding: 'utf8',
      maxBuffer: MAX_OUTPUT,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  } catch (error) {
    const { status, stdout, stderr } = error as { status?: number | null; stdout?: string; stderr?: string };
    if (anyCode && typeof status === 'number') return stdout ?? '';
    throw new Error(`${program} ${args.join(' ')} failed:\n${stdout ?? ''}${stderr ?? ''}`, { cause: error });
  }
}

function inFolder<T>(work: (folder: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-model-'));
  try {
    return work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
