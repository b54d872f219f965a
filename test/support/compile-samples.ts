import { execFile } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from './package.ts';

/** NodeNext decides by the name of a file whether it is ESM; a decorated class of Nest needs its types at run time. */
const COMPILER_OPTIONS = {
  target: 'ES2023',
  module: 'NodeNext',
  strict: true,
  skipLibCheck: true,
  types: ['node'],
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
};

/**
 * Writes programs of pages into `folder`, in place of what is there, and compiles each to `NAME.mjs`.
 * @returns what the compiler reports: nothing, if they are right
 */
export async function compileSamples(
  folder: string,
  samples: readonly { readonly name: string; readonly code: string }[],
): Promise<string> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const { name, code } of samples) writeFileSync(join(folder, `${name}.mts`), code);
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: COMPILER_OPTIONS, include: ['*.mts'] }),
  );
  const compiler = join(ROOT, 'node_modules/typescript-7/bin/tsc');
  // Several threads would each find out the same types again. Collecting garbage takes a third of so short a run.
  const args = [compiler, '-p', folder, '--pretty', 'false', '--singleThreaded'];
  const compiled = promisify(execFile)(process.execPath, args, { env: { ...process.env, GOGC: 'off' } });
  const { stdout } = await compiled.catch((error) => {
    // With faults, it exits with an error and its output. Without output, it did not run.
    if (!error.stdout) throw error;
    return error as { stdout: string };
  });
  return stdout;
}
