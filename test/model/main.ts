import { readFileSync } from 'node:fs';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { findSpin, LEASE_MODEL, verify } from './spin.ts';
import { kindsOf } from './trace.ts';
import { makeTraceSet, modelDigest, RECIPES, readTraceFile, writeTraceFile } from './trace-file.ts';

const HELP = `Checks docs/claim.pml with the model checker SPIN: no order of events breaks a guarantee, SPIN refutes every
wrong variant of docs/claims.md, and test/model/traces.json.gz has the model's traces. Checks docs/lease.pml in the same
way, with the wrong variants that it lists.

  npm run model -- [flags]

  --write      writes the traces anew, and checks nothing
  --attempts   how many attempts the largest search has: 2, or 3, which takes 2 GB and many minutes (2)
`;

/** Options with which every guarantee holds. */
const DESIGN = [
  '',
  'POLL=1',
  'RESTART',
  'FLUSH=1',
  'RETENTION=1',
  'FAILOVER=1',
  'FUSED DEADLINE',
  'REEXECUTE STRICT',
  'RECONCILE STRICT',
  'RECONCILE NO_STALL STRICT',
];
/** Wrong variants of docs/lease.pml, and the option with which one breaks its guarantee. */
const WRONG_LEASE = /^ \* {3}(W_[A-Z_]+) .*?(?:\(with (QUIET)\))?$/gm;
const WRONG = /^\| `(W_[A-Z_]+|FUSED)` \| `([^`]*)` \|/gm;

process.exitCode = run();

function run(): number {
  const { values } = parseArgs({
    options: { write: { type: 'boolean' }, attempts: { type: 'string', default: '2' }, help: { type: 'boolean' } },
  });
  if (values.help === true || !['2', '3'].includes(values.attempts)) {
    process.stdout.write(HELP);
    return values.help === true ? 0 : 2;
  }
  const spin = findSpin();
  if (values.write === true) return writeTraces(spin);
  const failures = [
    ...designFailures(spin, values.attempts),
    ...variantFailures(spin),
    ...leaseFailures(spin),
    ...traceFailures(spin),
  ];
  log(failures.length === 0 ? 'The model is right.' : `${failures.length} checks failed:\n${failures.join('\n')}`);
  return failures.length === 0 ? 0 : 1;
}

function writeTraces(spin: string): number {
  const sets = RECIPES.map((recipe) => {
    const set = makeTraceSet(spin, recipe);
    const kinds = new Set(set.traces.flatMap((trace) => [...kindsOf(trace)]));
    log(`${set.options.join(' ')}: ${set.traces.length} traces, ${kinds.size} kinds of steps`);
    return set;
  });
  writeTraceFile({ model: modelDigest(), sets });
  return 0;
}

function designFailures(spin: string, attempts: string): string[] {
  return DESIGN.flatMap((text) => {
    const options = [`N=${text === '' ? attempts : 2}`, ...split(text)];
    const { errors, states, violation } = verify(spin, options);
    log(`${options.join(' ')}: ${states.toLocaleString('en-US')} states, ${violation ?? 'no violation'}`);
    return errors === 0 ? [] : [`${options.join(' ')}: ${violation}`];
  });
}

function variantFailures(spin: string): string[] {
  const rows = [...readFileSync('docs/claims.md', 'utf8').matchAll(WRONG)];
  if (rows.length < 20) throw new Error('docs/claims.md has no table of wrong variants');
  return rows.flatMap(([, name = '', text = '']) => {
    const options = [name, ...split(text)];
    const { errors, violation } = verify(spin, options);
    log(`${options.join(' ')}: ${violation ?? 'NOT REFUTED'}`);
    return errors > 0 ? [] : [`${options.join(' ')} is not refuted`];
  });
}

function leaseFailures(spin: string): string[] {
  const right = ['MAX=2', 'QUIET'].flatMap((option) => {
    const { errors, states, violation } = verify(spin, [option], LEASE_MODEL);
    log(`lease.pml ${option}: ${states.toLocaleString('en-US')} states, ${violation ?? 'no violation'}`);
    return errors === 0 ? [] : [`lease.pml ${option}: ${violation}`];
  });
  const rows = [...readFileSync(LEASE_MODEL, 'utf8').matchAll(WRONG_LEASE)];
  if (rows.length < 7) throw new Error('docs/lease.pml lists no wrong variants');
  const wrong = rows.flatMap(([, name = '', quiet]) => {
    const { errors, violation } = verify(spin, [name, ...(quiet === undefined ? [] : [quiet])], LEASE_MODEL);
    log(`lease.pml ${name}: ${violation ?? 'NOT REFUTED'}`);
    return errors > 0 ? [] : [`lease.pml: ${name} is not refuted`];
  });
  return [...right, ...wrong];
}

function traceFailures(spin: string): string[] {
  const file = readTraceFile();
  const failures = RECIPES.flatMap((recipe, i) => {
    const isSame = isDeepStrictEqual(makeTraceSet(spin, recipe), file.sets[i]);
    log(`traces of ${recipe.options.join(' ')}: ${isSame ? 'the same' : 'OTHERS'}`);
    return isSame ? [] : [`test/model/traces.json.gz differs from the model: npm run model -- --write`];
  });
  return [...new Set(failures)];
}

function split(options: string): string[] {
  return options.split(' ').filter((option) => option !== '');
}

function log(line: string): void {
  process.stdout.write(`${line}\n`);
}
