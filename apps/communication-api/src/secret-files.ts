import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';

type Environment = Readonly<Record<string, string | undefined>>;

/** Ends the name of a variable whose value is the path of a file. */
const SUFFIX = '_FILE';
const MAX_BYTES = 65_536;

/** The values of the files, and one line per fault. */
export interface SecretFiles {
  readonly values: Readonly<Record<string, string>>;
  readonly faults: readonly string[];
}

/**
 * Reads the secrets that are given as files: `NAME_FILE` is the path of a file with the value of `NAME`.
 * @param environment without empty variables
 * @param settings the names of all settings
 * @param secrets the settings that may be in a file
 */
export function readSecretFiles(
  environment: Environment,
  settings: readonly string[],
  secrets: readonly string[],
): SecretFiles {
  const values: Record<string, string> = {};
  const faults: string[] = [];
  for (const name of settings) {
    const path = environment[name + SUFFIX];
    if (path === undefined) continue;
    try {
      if (!secrets.includes(name)) throw new Fault(`only secrets are read from files. Set ${name} instead`);
      if (environment[name] !== undefined) throw new Fault(`${name} is set, too. Give one of them`);
      values[name] = textOf(path);
    } catch (error) {
      faults.push(`${name}${SUFFIX}: ${messageOf(error)}`);
    }
  }
  return { values, faults };
}

/** A fault that the operator must correct. */
class Fault extends Error {
  override readonly name = 'Fault';
}

const messageOf = (error: unknown): string =>
  error instanceof Fault ? error.message : `the file cannot be read (${(error as NodeJS.ErrnoException).code})`;

/** @throws Fault, or an error of the system */
function textOf(path: string): string {
  // Otherwise a FIFO would block the start until another process writes to it.
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!fstatSync(descriptor).isFile()) throw new Fault('is not a file');
    const bytes = Buffer.alloc(MAX_BYTES + 1);
    let size = 0;
    for (let read = -1; read !== 0 && size < bytes.length; size += read)
      read = readSync(descriptor, bytes, size, bytes.length - size, null);
    if (size > MAX_BYTES) throw new Fault(`the file is larger than ${MAX_BYTES} bytes`);
    const text = bytes.toString('utf8', 0, size).replace(/\r?\n$/, '');
    if (text === '') throw new Fault('the file is empty');
    return text;
  } finally {
    closeSync(descriptor);
  }
}
