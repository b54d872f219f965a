import { spawnSync } from 'node:child_process';

const PERF = ['perf', ['stat', '-x', ',', '-e', 'instructions:u']];
// V8 rewrites compiled code while it runs, so valgrind must check for that.
const VALGRIND = [
  'valgrind',
  ['--tool=cachegrind', '--cache-sim=no', '--smc-check=all-non-file', '--cachegrind-out-file=/dev/null'],
];

/**
 * Counts the instructions of a Node process: with perf if the processor supports it, else with valgrind, which is about
 * fifty times slower.
 * @returns `{ count(nodeArguments), rounds }`; `rounds` is a sensible number of rounds for the tool
 */
export function instructionCounter() {
  if (read(PERF, ['true'], perfCount) !== undefined)
    return { count: (args) => counted(PERF, args, perfCount), rounds: 5 };
  if (read(VALGRIND, ['true'], valgrindCount) !== undefined)
    return { count: (args) => counted(VALGRIND, args, valgrindCount), rounds: 1 };
  throw new Error('neither perf nor valgrind can count instructions: install valgrind, or run without --instructions');
}

export const perfCount = (text) => toNumber(/^(\d+),[^,]*,instructions/m.exec(text)?.[1]);
export const valgrindCount = (text) => toNumber(/I +refs: +([\d,]+)/.exec(text)?.[1]);

function counted(tool, args, parse) {
  const count = read(tool, [process.execPath, ...args], parse);
  if (count === undefined) throw new Error(`${tool[0]} reported no instructions for ${args.join(' ')}`);
  return count;
}

function read([command, flags], args, parse) {
  const { status, stderr } = spawnSync(command, [...flags, ...args], { encoding: 'utf8' });
  return status === 0 ? parse(stderr) : undefined;
}

const toNumber = (digits) => (digits === undefined ? undefined : Number(digits.replaceAll(',', '')));
