import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { MODEL, searchTraces, simulateTrace, TRACE_HEADER } from './spin.ts';
import { kindsOf, type TraceFile, type TraceSet } from './trace.ts';

const FILE = resolve('test/model/traces.json.gz');

type Recipe = Omit<TraceSet, 'traces'>;

const seeds = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => i + 1);
const searched = (onOrphan: TraceSet['onOrphan'], fused: boolean, ...options: string[]): Recipe => {
  return { options: ['N=2', ...options], onOrphan, fused, from: 'search' };
};
const LONG = ['N=3', 'CRASH=2', 'GIVEUP=4', 'EXTENDS=2', 'POLL=2', 'RELEASED=2'];
const simulated = (onOrphan: TraceSet['onOrphan'], fused: boolean, ...options: string[]): Recipe => {
  return { options: [...LONG, ...options], onOrphan, fused, from: seeds(60) };
};

/** The options that change what a store must do, and those of the world around it. */
export const RECIPES: readonly Recipe[] = [
  searched('reject', false),
  searched('reject', false, 'RESTART'),
  searched('reject', false, 'FLUSH=1'),
  searched('reject', true, 'FUSED', 'DEADLINE'),
  searched('reexecute', false, 'REEXECUTE', 'STRICT'),
  searched('reconcile', false, 'RECONCILE', 'NO_STALL', 'STRICT'),
  simulated('reject', false),
  simulated('reject', true, 'FUSED', 'DEADLINE'),
  simulated('reexecute', false, 'REEXECUTE', 'STRICT'),
  simulated('reconcile', false, 'RECONCILE', 'NO_STALL', 'STRICT'),
];

/** The digest of what the traces are made from. */
export function modelDigest(): string {
  const hash = createHash('sha256');
  for (const file of [MODEL, TRACE_HEADER]) hash.update(readFileSync(file));
  return hash.digest('hex');
}

/** Lets SPIN make the traces. A searched trace whose kinds of steps others have is left out. */
export function makeTraceSet(spin: string, recipe: Recipe): TraceSet {
  const { options, from } = recipe;
  if (from !== 'search') return { ...recipe, traces: from.map((seed) => simulateTrace(spin, options, seed)) };
  const covered = new Set<string>();
  const traces = searchTraces(spin, options)
    .reverse()
    .filter((trace) => {
      const before = covered.size;
      for (const kind of kindsOf(trace)) covered.add(kind);
      return covered.size > before;
    });
  return { ...recipe, traces };
}

export function writeTraceFile(file: TraceFile): void {
  writeFileSync(FILE, gzipSync(JSON.stringify(file), { level: 9 }));
}

export function readTraceFile(): TraceFile {
  return JSON.parse(gunzipSync(readFileSync(FILE)).toString()) as TraceFile;
}
