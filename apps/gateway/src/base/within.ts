/** Whether a promise is fulfilled within `ms`. */
export function within(ms: number, promise: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    // An answer that arrived while this process stood still is read before the immediate.
    const timer = setTimeout(() => setImmediate(() => resolve(false)), ms);
    const settle = (fulfilled: boolean) => (): void => {
      clearTimeout(timer);
      resolve(fulfilled);
    };
    promise.then(settle(true), settle(false));
  });
}
