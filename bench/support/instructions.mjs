import { spawnSync } from 'node:child_process';

const PERF = ['perf', ['stat', '-x', ',', '-e', 'instructions:u']];
// Compiled code is written anew while it runs: valgrind has to look.
const VALGRIND = [
  'valgrind',
  ['--tool=cachegrind', '--cache-sim=no', '--smc-check=all-non-file', '--cachegrind-out-file=/dev/null'],
];

/**
 * Counts the instructions of a Node process: by perf where the processor tells them, by valgrind where not, about fifty times slower.
 * @returns `{ count(nodeArguments), rounds }`, with as many rounds as are worth their time
 */
export function instructionCounter() {
  if (read(PERF, ['true'], perfCount) !== undefined)
    return { count: (args) => counted(PERF, args, perfCount), rounds: 5 };
  if (read(VALGRIND, ['true'], valgrindCount) !== undefined)
    return { count: (args) => counted(VALGRIND, args, valgrindCount), rounds: 1 };
  throw new Error('neither perf nor valgrind can count instructions here: install valgrind, or compare times');
}

export const perfCount = (text) => toNumber(/^(\d+),[^,]*,instructions/m.exec(text)?.[1]);
export const valgrindCount = (text) => toNumber(/I +refs: +([\d,]+)/.exec(text)?.[1]);

function counted(tool, args, parse) {
  const count = read(tool, [process.execPath, ...args], parse);
  if (count === undefined) throw new Error(`${tool[0]} counted nothing for ${args.join(' ')}`);
  return count;
}

function read([command, flags], args, parse) {
  const { status, stderr } = spawnSync(command, [...flags, ...args], { encoding: 'utf8' });
  return status === 0 ? parse(stderr) : undefined;
}

const toNumber = (digits) => (digits === undefined ? undefined : Number(digits.replaceAll(',', '')));
