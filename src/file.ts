/**
 * Adjustments of limits in a file: the store of one process, or the kept file of a process with another store.
 * @module headgate/file
 */

export type { KeptFile } from './shared-limits/ports.ts';
export { createFileAdjustments, createKeptFile, type FileAdjustmentsOptions } from './shared-limits/stores/file.ts';
