import type { MaybePromise } from './ports.ts';

/** Whether there is something to wait for. What is there already is used at once: each wait costs more than the look-up that it is for. */
export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof (value as { readonly then?: unknown } | undefined)?.then === 'function';
}

/** `next` of the value, at once where that is there. */
export function after<T, R>(value: MaybePromise<T>, next: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return isPromise(value) ? value.then(next) : next(value);
}
