import type { Server } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { answersRequests } from '../domain/process-role.ts';
import type { Service } from '../service.ts';

const IDLE_CHECK_MS = 50;

/**
 * Lets a service finish its work. First the health checks say 503, so that the balancer sends its requests to other
 * processes. After SHUTDOWN_DELAY_MS no more connections are accepted, and running work may end within DRAIN_MS.
 */
export async function drain({ app, rooms, background }: Service, config: Config, log: Logger): Promise<void> {
  const { health, idempotency } = rooms;
  health.drain();
  const ended = background.close();
  if (answersRequests(config.ROLE)) await pause(config.SHUTDOWN_DELAY_MS);
  const deadline = performance.now() + config.DRAIN_MS;
  if (app.server.listening) await endConnections(app.server, config.DRAIN_MS, log);
  // A send continues after its client leaves.
  const leftMs = Math.max(0, deadline - performance.now());
  await Promise.race([idempotency.idle(), pause(leftMs, undefined, { ref: false })]);
  // The journal records these sends, and another process finds out their outcomes.
  const sends = idempotency.held + idempotency.pending;
  if (sends > 0) log.warn({ sends }, 'DRAIN_MS is over: some sends still run');
  await ended;
}

/** Stops listening, and waits until every connection ends. */
async function endConnections(server: Server, drainMs: number, log: Logger): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  // A connection would stay open for its next request after its last answer.
  const idle = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS);
  const cut = setTimeout(() => {
    log.warn('DRAIN_MS is over: the remaining requests are cut off');
    server.closeAllConnections();
  }, drainMs);
  await closed;
  clearInterval(idle);
  clearTimeout(cut);
}
