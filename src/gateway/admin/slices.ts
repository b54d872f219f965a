import { nextTurn } from '../../http/platform.ts';

const SLICE_MS = 2;

/** Returns a function to call between two steps of long work: it lets other requests go on if they have waited. */
export function createSlices(): () => Promise<void> | undefined {
  let begin = performance.now();
  return () => {
    if (performance.now() - begin < SLICE_MS) return undefined;
    return nextTurn().then(() => {
      begin = performance.now();
    });
  };
}
