/** Whether the caller must wait. A value that is already available is used at once: waiting costs too much. */
export function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as { readonly then?: unknown } | undefined)?.then === 'function';
}
