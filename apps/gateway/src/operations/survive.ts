import type { Log } from './log.ts';

/** No request should cause an uncaught error. If one does, it is logged, and the other requests are still served. */
export function surviveErrors(log: Log): void {
  const survive = (error: unknown): void => log.logger.error({ err: error }, 'uncaught error');
  process.on('uncaughtException', survive).on('unhandledRejection', survive);
}
