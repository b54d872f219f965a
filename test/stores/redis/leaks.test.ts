/**
 * A process that has used a store ends by itself once its client is closed, whatever Redis does: no timer, socket or
 * unhandled rejection is left.
 */

import { patient } from 'headgate-testbed/patience';
import { type RedisServer, startRedis } from 'headgate-testbed/redis-server';
import { describe, expect, it } from 'vitest';
import { CLIENTS } from '../../support/redis-clients.ts';
import { loadProcesses } from '../../support/redis-load-processes.ts';

/** Far below the deadline in the healthy case, so that a timer that is left would be noticed. */
const EXIT_MS = patient(5_000);
const start = loadProcesses();

const ENDS = [
  { when: 'Redis is well', deadlineMs: 60_000, fault: undefined },
  { when: 'Redis is frozen', deadlineMs: 200, fault: (server: RedisServer) => server.freeze() },
  { when: 'Redis has been killed', deadlineMs: 200, fault: (server: RedisServer) => server.kill() },
];

describe.each(ENDS)('closed while $when', ({ deadlineMs, fault }) => {
  it.concurrent.for(Object.keys(CLIENTS))('%s', async (name, { onTestFinished }) => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    const limits = { route: '1000000/1h' };
    const order = { port: server.port, clients: [name], policy: 'refuse', deadlineMs, limits } as const;
    const process = start(order, onTestFinished);
    await process.becomes('healthy');
    await fault?.(server);
    if (fault !== undefined) await process.becomes('unhealthy');
    const { unhandled, timers, exitMs } = await process.end();
    expect({ unhandled, timers }).toEqual({ unhandled: 0, timers: 0 });
    expect(exitMs).toBeLessThan(EXIT_MS);
  });
});
