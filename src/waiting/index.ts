/**
 * Jobs that wait for room in their windows, in place of a rejection.
 * @module headgate/waiting
 */

export type { CooldownOptions, CooldownReport, ProviderResponse } from '../limits/cooldown.ts';
export { NeverFitsError, QueueFullError, WaitTooLongError } from './errors.ts';
export { type AcquireOptions, createJobWorker, type JobWorker, type JobWorkerOptions } from './worker.ts';
