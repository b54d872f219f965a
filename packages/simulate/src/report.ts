import type { LimitName } from 'headgate/limits';
import type { TraceFigures } from './trace.ts';

/** Requests by who rejects them. */
export interface OutcomeMatrix {
  /** Neither rejects them. */
  none: number;
  /** Both reject them. */
  both: number;
  /** Only the current limits reject them: newly passed. */
  onlyCurrent: number;
  /** Only the candidate rejects them: newly rejected. */
  onlyCandidate: number;
}

/** The requests of a route, of a provider or of an account. */
export interface GroupFigures extends OutcomeMatrix {
  readonly name: string;
  /** When the candidate first rejected a request that the current limits accept; undefined if it never did. */
  firstNewlyRejectedAt: number | undefined;
  /** Longest time from such a rejection until its window is over, in milliseconds. */
  longestLockedOutMs: number;
}

/** The rejected requests of an account. Requests that neither policy rejects are not counted by account. */
export type AccountFigures = Omit<GroupFigures, 'none'>;

/** How full a window was after each request that it accepted. */
export interface WindowHeadroom {
  readonly limit: LimitName;
  readonly route: string;
  /** Such as `60/1m`. */
  readonly window: string;
  readonly requests: number;
  /** Used part of the window, over the requests: the 50th, 95th and 99th percentile, and the largest. */
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
  /** Accounts that ever used more than 80 % of it. */
  readonly accountsOver80: number;
}

/** Requests that began in `[at, at + bucketMs)`. */
export interface TimelineBucket {
  readonly at: number;
  readonly requests: number;
  readonly rejectedByCurrent: number;
  readonly rejectedByCandidate: number;
}

/** A request whose logged outcome differs from the outcome under the current limits. */
export interface LoggedDifference {
  readonly at: number;
  readonly account: string;
  readonly route: string;
  readonly logged: 'accepted' | 'rejected';
}

/** The current limits' decisions on requests whose outcome is in the log. */
export interface LoggedFigures {
  readonly accepted: number;
  readonly rejected: number;
  /** Requests that the current limits judge as the log says. */
  readonly agree: number;
  readonly differ: number;
  /** The first 20 requests that differ. */
  readonly first: readonly LoggedDifference[];
}

/** What {@link simulate} found. */
export interface SimulationReport {
  readonly trace: Readonly<TraceFigures>;
  /** Whether a candidate was simulated. Without one its figures equal the current limits' figures. */
  readonly hasCandidate: boolean;
  /** Requests that were simulated. */
  readonly requests: number;
  /** Time of the first and of the last request, in milliseconds since 1970; undefined without a request. */
  readonly from: number | undefined;
  readonly to: number | undefined;
  readonly matrix: Readonly<OutcomeMatrix>;
  /** `matrix.onlyCandidate` of all requests, from 0 to 1. */
  readonly newlyRejected: number;
  /** Undefined if the log contains no outcomes. */
  readonly logged: LoggedFigures | undefined;
  readonly routes: readonly GroupFigures[];
  readonly providers: readonly GroupFigures[];
  /** At most 50: by the most differences, then by the most rejections. Other accounts are only counted. */
  readonly accounts: readonly AccountFigures[];
  readonly accountsNewlyRejected: number;
  readonly accountsNewlyPassed: number;
  readonly headroom: { readonly current: readonly WindowHeadroom[]; readonly candidate: readonly WindowHeadroom[] };
  readonly timeline: { readonly bucketMs: number; readonly buckets: readonly TimelineBucket[] };
  /** Corrections of a cost whose request was not in the trace, or came too late. */
  readonly lostSettlements: number;
  /** Requests with a customer's plan that is missing in the limits. They were not simulated. */
  readonly unknownPlans: number;
  /** Requests with a lane that is missing in the limits. They were not simulated. */
  readonly unknownLanes: number;
}
