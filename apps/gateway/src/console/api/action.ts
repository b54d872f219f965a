import { useState } from 'preact/hooks';
import { ApiError } from './client.ts';

/** Something that the operator does with a button. */
export interface Action {
  readonly isRunning: boolean;
  /** Why it was not done, or perhaps was not. */
  readonly error: ApiError | undefined;
  /** Does it, unless it is under way. An error of the gateway is shown. */
  run(work: () => Promise<void>): void;
}

/** Does one thing at a time, and remembers why it failed. */
export function useAction(): Action {
  const [{ isRunning, error }, setState] = useState<Pick<Action, 'isRunning' | 'error'>>(IDLE);
  const end = (reason: unknown): void => {
    if (!(reason instanceof ApiError)) throw reason;
    setState({ isRunning: false, error: reason });
  };
  return {
    isRunning,
    error,
    run(work) {
      if (isRunning) return;
      setState({ isRunning: true, error: undefined });
      void work().then(() => setState(IDLE), end);
    },
  };
}

const IDLE = { isRunning: false, error: undefined };
