/** A value, or a promise of it. */
export type MaybePromise<T> = T | Promise<T>;

/** The same object, whose methods never return a promise. */
export type Synchronous<T> = { [Name in keyof T]: WithoutPromise<T[Name]> };
type WithoutPromise<Method> = Method extends (...args: infer Args) => infer Result
  ? (...args: Args) => Exclude<Result, Promise<unknown>>
  : Method;

/** Whether the caller must wait. A value that is already available is used at once: waiting costs too much. */
export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof (value as { readonly then?: unknown } | undefined)?.then === 'function';
}

/** Calls `next` with the value: at once if it is available, else when the promise resolves. */
export function after<T, R>(value: MaybePromise<T>, next: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return isPromise(value) ? value.then(next) : next(value);
}
