import { OptionError } from '../../base/errors.ts';
import type { KeptFile } from '../ports.ts';
import { loadState, saveState } from './state-file.ts';

/**
 * Creates the kept file of a process that has its adjustments in another store, such as Redis. The file has what
 * the process last knew, for a start while that store is away or has lost its data. Several processes may have the same
 * file: each replaces it as a whole.
 * @throws OptionError
 */
export function createKeptFile(path: string): KeptFile {
  if (typeof path !== 'string' || path === '') throw new OptionError('path', path, 'must be the path of a file');
  return { load: () => loadState(path), save: (state) => saveState(path, state) };
}
