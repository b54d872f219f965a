/**
 * Adjustments of limits in a file: the store of one process, or the kept file of a process with another store.
 * @module headgate/file
 */

export type { KeptFile } from '../../core/ports.ts';
export { createFileAdjustments, type FileAdjustmentsOptions } from './adjustments.ts';
export { createKeptFile } from './kept-file.ts';
