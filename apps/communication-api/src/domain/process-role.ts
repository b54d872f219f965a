export const PROCESS_ROLES = ['all', 'api', 'worker'] as const;

/** The work of a process: it answers requests (`api`), works in the background (`worker`), or both. */
export type ProcessRole = (typeof PROCESS_ROLES)[number];

export const answersRequests = (role: ProcessRole): boolean => role !== 'worker';

/** Jobs such as webhooks, the sweeps of the journal, retention, and the daily checks of domains. */
export const worksInBackground = (role: ProcessRole): boolean => role !== 'api';
