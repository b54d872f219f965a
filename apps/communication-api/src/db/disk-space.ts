import { statfsSync } from 'node:fs';
import { UserError } from '../domain/user-error.ts';

/**
 * The embedded PostgreSQL needs 16 MB at a time for its log. Without them it gives up in the middle of a statement, and
 * PGlite never returns from that call: the whole process would hang. So the service stops writing before.
 */
const RESERVE_BYTES = 48 * 2 ** 20;
/** How long a look that found space counts. The service writes far less than the reserve in this time. */
const LOOK_MS = 100;

/** The disk of the embedded database is almost full. */
export class DiskFullError extends UserError {
  override readonly name = 'DiskFullError';
  /** The code of PostgreSQL for a full disk. */
  readonly code = '53100';

  constructor(folder: string) {
    super(`DATA_DIR: The disk of ${folder} has less than ${RESERVE_BYTES / 2 ** 20} MiB of free space. Make room.`, 1);
  }
}

/**
 * Makes a check to be called before the database is changed.
 * @param folder of the database
 */
export function createSpaceCheck(folder: string): () => void {
  let lookedAt = Number.NEGATIVE_INFINITY;
  let hasSpace = true;
  return () => {
    const now = performance.now();
    if (!hasSpace || now - lookedAt >= LOOK_MS) {
      const { bavail, bsize } = statfsSync(folder);
      [lookedAt, hasSpace] = [now, bavail * bsize >= RESERVE_BYTES];
    }
    if (!hasSpace) throw new DiskFullError(folder);
  };
}
