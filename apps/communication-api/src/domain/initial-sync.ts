/** The initial sync of an account, as it is stored. */
export interface InitialSync {
  readonly status: 'running' | 'completed';
  /** ISO 8601. */
  readonly started_at: string;
  /** Parts of the whole that are done, 0 to 1. */
  readonly progress?: number | undefined;
  /** Present if the sync takes a known time: then the time decides, and no process has to update the row. */
  readonly duration_ms?: number | undefined;
}

/** The initial sync of an account now. */
export interface SyncNow {
  readonly status: 'running' | 'completed';
  readonly started_at: string;
  readonly progress: number;
}

/** A sync that starts now. Without a duration it is completed at once. */
export const startSync = (nowMs: number, durationMs = 0): InitialSync => ({
  status: durationMs > 0 ? 'running' : 'completed',
  started_at: new Date(nowMs).toISOString(),
  ...(durationMs > 0 ? { duration_ms: durationMs } : {}),
});

/** How far a stored sync is. It is the same in every process, since it depends on the row and the time only. */
export function syncAt(sync: InitialSync, nowMs: number): SyncNow {
  const { status, started_at, duration_ms, progress = 0 } = sync;
  if (status === 'completed') return { status, started_at, progress: 1 };
  if (duration_ms === undefined) return { status, started_at, progress };
  const done = Math.max(0, (nowMs - Date.parse(started_at)) / duration_ms);
  return done >= 1 ? { status: 'completed', started_at, progress: 1 } : { status, started_at, progress: done };
}
