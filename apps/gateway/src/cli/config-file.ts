import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { UsageError } from './usage.ts';

/** Content of a config file. */
export interface ConfigFile {
  readonly name: string;
  readonly text: string;
  /** Short hash of its bytes, by which operators compare the configs of their gateways. */
  readonly hash: string;
}

const HASH_DIGITS = 12;

/** @throws UsageError if the file cannot be read */
export async function readConfigFile(name: string): Promise<ConfigFile> {
  const bytes = await readFile(name).catch((error: NodeJS.ErrnoException) => {
    const why = error.code === 'ENOENT' ? 'the file does not exist' : `the file cannot be read (${error.code})`;
    throw new UsageError(`--config ${name}: ${why}`);
  });
  const hash = createHash('sha256').update(bytes).digest('hex').slice(0, HASH_DIGITS);
  return { name, text: bytes.toString('utf8'), hash };
}

/**
 * Reads a config file that was read before. A pipe is refused: `--config <(…)` yields nothing the second time, and the
 * process would wait for a writer of a named pipe. Until one came, no other reload could run, and the process could not
 * end.
 * @throws UsageError if the file cannot be read
 */
export async function readConfigFileAgain(name: string): Promise<ConfigFile> {
  const canBeRead = await stat(name).then(
    (stats) => stats.isFile(),
    // The reading says why.
    () => true,
  );
  if (!canBeRead) throw new UsageError(`--config ${name}: it is not a regular file, so it cannot be read again`);
  return readConfigFile(name);
}
