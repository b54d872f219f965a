import type { Cost } from 'headgate';
import type { Groups } from 'headgate/limits';

/** A request of a trace. */
export interface TraceRequest {
  /** When the limits decided about it, in milliseconds since 1970. */
  readonly at: number;
  readonly account: string;
  readonly route: string;
  readonly provider?: string | undefined;
  /** The customer's plan. */
  readonly plan?: string | undefined;
  readonly lane?: string | undefined;
  /** Groups that it counts for: an id by name (S31). */
  readonly groups?: Groups | undefined;
  /**
   * A number of requests, or a cost per unit, as in `{ requests: 1, tokens: 800 }`. Limits ignore units that they do not
   * count.
   * @default 1
   */
  readonly cost?: Cost | undefined;
  /** The outcome in the log; undefined if the log does not show it. */
  readonly logged?: 'accepted' | 'rejected' | undefined;
  /** Its name, if a {@link TraceSettlement} of the trace corrects its cost. */
  readonly id?: string | undefined;
}

/** The cost of an earlier request was corrected (S13). */
export interface TraceSettlement {
  readonly at: number;
  /** The `id` of the request. */
  readonly settles: string;
  /** The request's final cost; 0 is a refund. */
  readonly cost: Cost;
}

/** A line of a trace that has to do with limits. */
export type TraceEvent = TraceRequest | TraceSettlement;

/** Why a line is not a request that limits decide about. */
export type SkipReason =
  /** Not a line of this format, such as a stack of an error. */
  | 'unreadable'
  /** More than 65,536 bytes. */
  | 'too_long'
  /** A line of the gateway's log that is about something else than a request. */
  | 'other'
  /** No route of the config matches. */
  | 'no_route'
  /** The route names no account, so it is not limited; or the line names no account. */
  | 'no_account'
  /** The gateway answered before any limit decided: 401, 404, 409, 422 and the like. */
  | 'refused'
  /** The answer came from the store of idempotency keys, and was not charged (S12). */
  | 'replayed'
  /** The failure policy decided, with other counters (S17). */
  | 'degraded'
  /** A block rejected it, which no limit of a config knows (S21). */
  | 'blocked'
  /** Too many requests ran at the same time: a log does not say when requests end (S29). */
  | 'in_flight';

/** Figures of reading a trace so far. */
export interface TraceFigures {
  /** Lines that are not empty. */
  lines: number;
  /** Requests among them. */
  requests: number;
  /** Lines by the reason why they were skipped; only reasons that occurred. */
  readonly skipped: Partial<Record<SkipReason, number>>;
  /** Requests whose line came too late to be sorted. They are judged when their line came. */
  late: number;
  /** Lines without the exact moment of the decision, which is taken from other fields. */
  inexact: number;
  /** Changes of the limits in the log: counters or limits differed from the config's. */
  changes: number;
  /** Bytes or characters of the source, before decompression. */
  size: number;
  /** The format of the lines; undefined before the first line that shows it. */
  format: Exclude<TraceFormat, 'auto'> | undefined;
}

/** `headgate`: the gateway's log; `combined`: of nginx and Apache; `json`: one object per line; `auto`: decided by the lines. */
export type TraceFormat = 'auto' | 'headgate' | 'combined' | 'json';

/** Events in the order of their times, in batches, with figures of the reading so far. */
export interface Trace extends AsyncIterable<readonly TraceEvent[]> {
  readonly figures: TraceFigures;
}

/** Figures before the first line. */
export function emptyFigures(): TraceFigures {
  return { lines: 0, requests: 0, skipped: {}, late: 0, inexact: 0, changes: 0, size: 0, format: undefined };
}
