import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** The repository. */
export const ROOT = resolve(import.meta.dirname, '../../../..');
const FOLDER = join(ROOT, 'apps/communication-api/docs/deploy');

/** The path of a file for operators. */
export const deployFile = (name: string): string => join(FOLDER, name);

export const deployText = (name: string): string => readFileSync(deployFile(name), 'utf8');

/** A page of apps/communication-api/docs. */
export const servicePage = (name: string): string =>
  readFileSync(join(ROOT, 'apps/communication-api/docs', name), 'utf8');

/** The commands of a page: each block that is marked as `sh`. */
export const commandsOf = (page: string): readonly string[] =>
  [...servicePage(page).matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, text]) => text as string);

/** One line of a Dockerfile. */
export interface Instruction {
  readonly name: string;
  readonly rest: string;
}

/** The instructions of the Dockerfile, each on one line, with the defaults of its ARGs. */
export function dockerInstructions(): readonly Instruction[] {
  const values = new Map<string, string>();
  const instructions: Instruction[] = [];
  for (const line of deployText('Dockerfile')
    .replace(/\\\n\s*/g, '')
    .split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const name = line.split(' ')[0] as string;
    const rest = line.slice(name.length + 1).replace(/\$\{(\w+)\}/g, (_, key: string) => values.get(key) ?? '');
    if (name === 'ARG') values.set(rest.split('=')[0] as string, rest.slice(rest.indexOf('=') + 1));
    else instructions.push({ name, rest });
  }
  return instructions;
}

/** The values of an instruction that is written as a list. */
export const listOf = (instructions: readonly Instruction[], name: string): readonly string[] =>
  JSON.parse(/\[.*\]$/.exec(instructions.findLast((each) => each.name === name)?.rest ?? '')?.[0] ?? '[]');
