import { useEffect, useState } from 'preact/hooks';
import { ApiError } from './client.ts';

/** In place of an interval: asks once, and again only by `refresh`. It is the longest timer of a browser. */
export const ONCE = 2 ** 31 - 1;

/** The value that was read last. */
export interface Polled<Value> {
  /** The last answer; it stays while later ones fail. */
  readonly value: Value | undefined;
  /** Why the last attempt failed. */
  readonly error: ApiError | undefined;
  /** Asks now. */
  refresh(): void;
}

/**
 * Asks again and again: `everyMs` after each answer, so that slow answers do not pile up, and never in a hidden tab.
 * @param key names the value; another key begins anew
 */
export function usePolled<Value>(
  key: string,
  everyMs: number,
  load: (signal: AbortSignal) => Promise<Value>,
): Polled<Value> {
  const [answer, setAnswer] = useState<{ key: string; value?: Value | undefined; error?: ApiError | undefined }>({
    key,
  });
  const [round, setRound] = useState(0);
  // `load` is another function each time. `key` says which value it loads.
  useEffect(() => {
    const ended = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async (): Promise<void> => {
      const next = await load(ended.signal).then(
        (value) => ({ value, error: undefined }),
        (error: unknown) => ({ error: error instanceof ApiError ? error : new ApiError(0, String(error)) }),
      );
      if (ended.signal.aborted) return;
      setAnswer((last) => ({ ...(last.key === key && { value: last.value }), key, ...next }));
      timer = setTimeout(whenVisible, everyMs);
    };
    const whenVisible = (): void => {
      if (document.visibilityState === 'visible') void read();
      else document.addEventListener('visibilitychange', whenVisible, { once: true });
    };
    whenVisible();
    return () => {
      ended.abort();
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', whenVisible);
    };
  }, [key, everyMs, round]);
  const isOfKey = answer.key === key;
  return {
    value: isOfKey ? answer.value : undefined,
    error: isOfKey ? answer.error : undefined,
    refresh: () => setRound((last) => last + 1),
  };
}
