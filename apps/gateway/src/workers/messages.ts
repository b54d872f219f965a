import type { Figure, FigureName } from '../admin/figures.ts';
import type { ReloadReport } from '../config/config-change.ts';
import type { Config } from '../config/schema.ts';
import type { MetricFamily } from '../operations/metrics.ts';
import type { Address } from '../server/listen.ts';
import type { SentEvent } from '../traffic/event-feed.ts';

/** The primary's calls to a worker, with what they give and their results. */
export interface WorkerCalls {
  /** The first call. The worker listens. */
  readonly start: { readonly given: Config; readonly result: Address };
  readonly reload: { readonly given: Config; readonly result: ReloadReport };
  readonly metrics: { readonly given: undefined; readonly result: readonly MetricFamily[] };
  /** One of the worker's figures. */
  readonly figures: { readonly given: FigureQuestion; readonly result: Figure<FigureName> };
  /** Whether `/readyz` answers 200. */
  readonly ready: { readonly given: boolean; readonly result: undefined };
  /** Whether the worker sends {@link WorkerEvents}. Results in the events since it sent some last. */
  readonly events: { readonly given: boolean; readonly result: readonly SentEvent[] };
  /** The worker drains, and ends after its reply. */
  readonly stop: { readonly given: undefined; readonly result: Stopped };
}

export type CallName = keyof WorkerCalls;

export interface FigureQuestion {
  readonly name: FigureName;
  readonly args: readonly unknown[];
}

/** The end of a worker that was asked to stop. */
export interface Stopped {
  /** How many requests were cut off. */
  readonly cutOff: number;
  /** Its last metrics. */
  readonly metrics: readonly MetricFamily[];
}

/** From the primary to a worker. */
export type Call = {
  readonly [Name in CallName]: { readonly id: number; readonly name: Name; readonly given: WorkerCalls[Name]['given'] };
}[CallName];

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

/** From a worker to the primary, while clients listen to events. */
export interface WorkerEvents {
  readonly events: readonly SentEvent[];
  /** How many more there were. */
  readonly dropped: number;
}

/** The facts about an error that another process can know. */
export interface CallError {
  readonly message: string;
  /** The system's code, if the worker cannot listen. */
  readonly listenCode?: string | undefined;
}
