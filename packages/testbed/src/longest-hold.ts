import { startThreadTimer } from './cpu-timer.ts';

/**
 * Runs a call.
 * @returns its result, and the longest processor time of its thread in which it let nothing else run, in milliseconds
 */
export async function longestHold<T>(call: () => T | Promise<T>): Promise<{ readonly result: T; readonly ms: number }> {
  let [ms, isOver] = [0, false];
  let elapsed = startThreadTimer();
  const turn = (): void => {
    ms = Math.max(ms, elapsed());
    elapsed = startThreadTimer();
    if (!isOver) setImmediate(turn);
  };
  const next = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  await next();
  elapsed = startThreadTimer();
  setImmediate(turn);
  const result = await call();
  await next();
  isOver = true;
  return { result, ms };
}
