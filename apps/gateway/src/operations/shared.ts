/**
 * Calls that begin while one runs share its result. Every client that reaches the listener may ask at any rate without
 * a key, so many questions at once must cost as much as one.
 */
export function shared<Result>(call: () => Promise<Result>): () => Promise<Result> {
  let running: Promise<Result> | undefined;
  return () => {
    running ??= call().finally(() => {
      running = undefined;
    });
    return running;
  };
}
