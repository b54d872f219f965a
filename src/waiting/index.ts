/**
 * Jobs that wait for room in their windows, in place of a rejection.
 * @module headgate/waiting
 */

export type { CooldownReport, CooldownSubject } from '../limits/cooldown.ts';
export type { CooldownOptions, ProviderResponse } from '../limits/cooldown-options.ts';
export { NeverFitsError, QueueFullError, WaitTooLongError } from './errors.ts';
export { type AcquireOptions, createJobWorker, type JobWorker, type JobWorkerOptions } from './worker.ts';
