import type { ClientTimers } from './options.ts';

/** @throws the signal's reason */
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

/** A signal that also fires after `ms`, until it is released: what is read of an answer afterwards has the time it needs. */
export function abortable(timers: ClientTimers, ms: number, outer: AbortSignal | undefined) {
  const controller = new AbortController();
  const cancel = timers.after(ms, () => {
    controller.abort(new DOMException(`no answer within ${ms} ms`, 'TimeoutError'));
  });
  const signal = outer === undefined ? controller.signal : AbortSignal.any([outer, controller.signal]);
  return { signal, release: cancel };
}
