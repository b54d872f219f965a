import { setTimeout as pause } from 'node:timers/promises';
import type { Config } from '../config.ts';
import { UserError } from '../domain/user-error.ts';
import type { Terminal } from './command-line.ts';

/** Longer than the process itself waits for PostgreSQL. */
const ANSWER_MS = 5_000;
const PAUSE_MS = 250;

/**
 * Asks the process whose settings these are whether it is ready, until it is or the time is over.
 * @returns the exit code: 0 or 1
 * @throws UserError without ADMIN_PORT
 */
export async function askHealth(
  { ADMIN_HOST, ADMIN_PORT }: Config,
  waitMs: number,
  terminal: Terminal,
): Promise<number> {
  if (ADMIN_PORT === undefined || ADMIN_PORT === 0)
    throw new UserError('health: ADMIN_PORT is not set, so the process has no health checks.', 2);
  const url = `http://${hostOf(ADMIN_HOST)}:${ADMIN_PORT}/readyz`;
  const until = performance.now() + waitMs;
  for (;;) {
    const { isReady, text } = await ask(url);
    if (isReady || performance.now() >= until) {
      terminal.out(`${url}: ${text}\n`);
      return isReady ? 0 : 1;
    }
    await pause(PAUSE_MS);
  }
}

async function ask(url: string): Promise<{ readonly isReady: boolean; readonly text: string }> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS), redirect: 'manual' });
    return { isReady: answer.status === 200, text: `${answer.status} ${await answer.text()}` };
  } catch (error) {
    const { cause = error } = error as Error;
    return { isReady: false, text: cause instanceof Error ? cause.message : String(cause) };
  }
}

/** A process that listens on every address is asked at the loopback address. */
function hostOf(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}
