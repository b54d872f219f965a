import { useEffect, useState } from 'preact/hooks';
import type { Limit } from '../api/answers.ts';
import { ApiError, ask } from '../api/client.ts';
import type { Target } from '../parts/target.ts';

/** A limit as it was read. */
export interface ReadLimit {
  readonly limit: Limit | undefined;
  readonly error: ApiError | undefined;
  /** Reads it again. */
  read(): void;
}

/** Reads a limit once, after some time. */
export function useLimit(target: Target, afterMs = 0): ReadLimit {
  const [answer, setAnswer] = useState<{ readonly limit?: Limit; readonly error?: ApiError }>({});
  const [round, setRound] = useState(0);
  useEffect(() => {
    const ended = new AbortController();
    const timer = setTimeout(
      () => {
        ask<Limit>('GET', 'v1/limit', { query: { ...target }, signal: ended.signal }).then(
          (limit) => setAnswer({ limit }),
          (error: unknown) => {
            if (error instanceof ApiError) setAnswer({ error });
          },
        );
      },
      round === 0 ? afterMs : 0,
    );
    return () => {
      clearTimeout(timer);
      ended.abort();
    };
  }, [round]);
  return { limit: answer.limit, error: answer.error, read: () => setRound((last) => last + 1) };
}
