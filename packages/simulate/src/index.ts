/**
 * Lets the requests of a log pass limits, and reports the decisions of the limits.
 * @module headgate-simulate
 */

export type { Limits, Subject } from 'headgate';
export type { LimitName, WindowSetSource } from 'headgate/limits';
export { TraceError } from './lines.ts';
export {
  type AccountPlace,
  type FieldMap,
  type ReadTraceOptions,
  readTrace,
  type TraceRoute,
  type TraceSource,
} from './read-trace.ts';
export { type Recommendation, type RecommendedLimit, type RecommendOptions, recommend } from './recommend.ts';
export { recommendationText } from './recommend-text.ts';
export type {
  AccountFigures,
  GroupFigures,
  LoggedDifference,
  LoggedFigures,
  OutcomeMatrix,
  SimulationReport,
  TimelineBucket,
  WindowHeadroom,
} from './report.ts';
export { reportHtml } from './report-html.ts';
export { reportText } from './report-text.ts';
export { shownJson } from './shown.ts';
export { type AccountLimits, type Policy, type SimulateOptions, simulate } from './simulate.ts';
export type {
  SkipReason,
  Trace,
  TraceEvent,
  TraceFigures,
  TraceFormat,
  TraceRequest,
  TraceSettlement,
} from './trace.ts';
