/** A window of a limit. */
export interface LimitWindow {
  readonly max: number;
  readonly durationMs: number;
}

/** The usage of an account in an active window. */
export interface UsedWindow {
  readonly durationMs: number;
  readonly used: number;
  /** Until the window ends. */
  readonly resetMs: number;
}

/** A window of a limit, with its present count. */
export interface PreviewedWindow extends LimitWindow {
  readonly used: number;
  /** Until the active window ends; 0: none is active. */
  readonly resetMs: number;
  /** Whether the next request would be rejected. */
  readonly rejects: boolean;
}

/**
 * The state of windows if they replaced the windows of their limit now. Counted requests stay counted if the length of
 * their window stays; a window of a new length begins empty.
 * @param used the windows of the same limit before the change
 */
export const previewOf = (windows: readonly LimitWindow[], used: readonly UsedWindow[]): readonly PreviewedWindow[] =>
  windows.map(({ max, durationMs }) => {
    const active = used.find((each) => each.durationMs === durationMs);
    const count = active?.used ?? 0;
    return { max, durationMs, used: count, resetMs: active?.resetMs ?? 0, rejects: count >= max };
  });
