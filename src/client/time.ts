import type { ClientTimers } from './options.ts';

/** @throws the reason of the signal, if that is aborted first */
export function sleep(timers: ClientTimers, ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = (): void => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = timers.after(ms, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/**
 * A signal that is aborted by `outer`, and after `ms` unless `stopTimer` was called. The caller stops the timer before
 * it returns the response, so that reading the body may take longer.
 */
export function signalWithTimeout(timers: ClientTimers, ms: number, outer: AbortSignal | undefined) {
  const controller = new AbortController();
  const stopTimer = timers.after(ms, () => {
    controller.abort(new DOMException(`no response within ${ms} ms`, 'TimeoutError'));
  });
  const signal = outer === undefined ? controller.signal : AbortSignal.any([outer, controller.signal]);
  return { signal, stopTimer };
}
