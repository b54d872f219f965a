import type { ReloadReport } from '../config/config-change.ts';
import type { Config } from '../config/schema.ts';
import type { MetricFamily } from '../operations/metrics.ts';
import type { Address } from '../server/listen.ts';

/** The primary's calls to a worker, with their results. */
export interface WorkerCalls {
  /** The first call. The worker listens. */
  readonly start: { readonly config: Config; readonly result: Address };
  readonly reload: { readonly config: Config; readonly result: ReloadReport };
  readonly metrics: { readonly config?: never; readonly result: readonly MetricFamily[] };
  /** The worker drains, and ends after its reply. */
  readonly stop: { readonly config?: never; readonly result: Stopped };
}

export type CallName = keyof WorkerCalls;

/** The end of a worker that was asked to stop. */
export interface Stopped {
  /** How many requests were cut off. */
  readonly cutOff: number;
  /** Its last metrics. */
  readonly metrics: readonly MetricFamily[];
}

/** From the primary to a worker. */
export interface Call {
  readonly id: number;
  readonly name: CallName;
  readonly config?: Config | undefined;
}

/**
 * The worker's first message, after which it takes calls. Messages that were sent before, while it loaded, may be lost.
 */
export const READY: CallReply = { id: 0 };

/** From a worker to the primary. */
export interface CallReply {
  /** Id of the call; the first id is 1. */
  readonly id: number;
  readonly result?: WorkerCalls[CallName]['result'];
  readonly error?: CallError;
}

/** The facts about an error that another process can know. */
export interface CallError {
  readonly message: string;
  /** The system's code, if the worker cannot listen. */
  readonly listenCode?: string | undefined;
}
