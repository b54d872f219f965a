import type { ServerResponse } from 'node:http';
import { z } from 'zod';
import { type Caller, type Operation, operation } from '../../api/operation.ts';
import { named } from '../../api/schemas.ts';
import { refuseForNow } from '../../exchange/refusal.ts';
import { EVENT_TYPES, MAX_PER_TOKEN, MAX_SUBSCRIBERS, OUTCOMES } from '../../traffic/event-feed.ts';
import type { AdminContext } from '../context.ts';

const HEARTBEAT_MS = 15_000;
/** A client that reads nothing for this long counts as gone. */
const STALLED_MS = 60_000;

const TOO_MANY = {
  clients: `${MAX_SUBSCRIBERS} clients listen to the events, and there may not be more: close one of them.`,
  token: `${MAX_PER_TOKEN} clients listen to the events with this token, and there may not be more: close one of them, or use another token.`,
};

/** Streams events as they happen. */
export function eventOperations({ subscribe }: AdminContext): Operation[] {
  return [
    operation({
      id: 'streamEvents',
      method: 'GET',
      path: '/v1/events',
      role: 'viewer',
      tag: 'Traffic',
      summary: 'Events of this gateway, as server-sent events',
      description:
        'At most 8 clients, 3 of them with the same token. A client that reads too slowly gets the event `dropped` with a count. `after` takes the id of the last event that the client has.',
      query: z.strictObject({
        types: z.array(z.enum(EVENT_TYPES)).default([...EVENT_TYPES]),
        account: named('Only decisions about this account').optional(),
        route: named('Only decisions about this route').optional(),
        outcome: z.enum(OUTCOMES).optional().describe('Only decisions with this outcome'),
        sample: z.number().min(0).max(1).default(1).describe('Share of the decisions'),
        after: z.int().min(0).optional().describe('The id of the last event that the client has'),
      }),
      answer: z.string(),
      mediaType: 'text/event-stream',
      errors: [503],
      async run({ query: { after, ...filter } }, caller) {
        let response: ServerResponse | undefined;
        const early: string[] = [];
        const end = await subscribe({
          token: caller.tokenId,
          filter,
          sink: {
            write: (text) => (response === undefined ? early.push(text) > 0 : response.write(text)),
            onDrain: (listener) => response?.once('drain', listener),
          },
          after,
        });
        if (typeof end === 'string') return refuseForNow(TOO_MANY[end]);
        return {
          stream(opened) {
            response = opened;
            keepOpen(opened, caller, end);
            opened.write(`: events follow\n\n${early.join('')}`);
          },
        };
      },
    }),
  ];
}

/**
 * Sends a comment from time to time, so that proxies do not close the connection. Ends if the client disconnects, or
 * its token is no longer valid.
 */
function keepOpen(response: ServerResponse, caller: Caller, end: () => void): void {
  // A response that waits for an earlier response of its connection has no socket, so it never learns that the client
  // left.
  const { socket } = response.req;
  // The client left before the first event could be sent.
  if (socket.destroyed) {
    end();
    return;
  }
  socket.setTimeout(0);
  let stalledMs = 0;
  const heartbeat = setInterval(() => {
    stalledMs = response.writableNeedDrain ? stalledMs + HEARTBEAT_MS : 0;
    if (stalledMs >= STALLED_MS || !caller.isPermitted()) socket.destroy();
    else if (stalledMs === 0) response.write(':\n\n');
  }, HEARTBEAT_MS).unref();
  socket.once('close', () => {
    clearInterval(heartbeat);
    end();
  });
}
