import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { vi } from 'vitest';
import { cleanUpLater } from './clean-up.ts';

/** A request that an endpoint received. */
export interface ReceivedWebhook {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** When it was received. */
  readonly at: number;
}

/** The answer of an endpoint: a status, or a function that handles the connection. */
export type WebhookAnswer = number | ((answer: ServerResponse, request: ReceivedWebhook) => unknown);

/** An endpoint on this machine. It ends after the test file. */
export interface WebhookReceiver {
  readonly url: string;
  readonly requests: ReceivedWebhook[];
  /** Decides the answers to the next requests; 204 until then. */
  answer(answer: WebhookAnswer): void;
}

export async function startReceiver(): Promise<WebhookReceiver> {
  const requests: ReceivedWebhook[] = [];
  let answer: WebhookAnswer = 204;
  const server = createServer(async (message, reply) => {
    const request = { path: message.url ?? '', headers: message.headers, body: await buffer(message), at: Date.now() };
    requests.push(request);
    if (typeof answer === 'number') reply.writeHead(answer).end();
    else answer(reply, request);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUpLater(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hooks`,
    requests,
    answer: (next) => {
      answer = next;
    },
  };
}

/**
 * Verifies a request with the public library, as a receiver does.
 * @param nowMs the time of the receiver
 * @returns the event
 * @throws WebhookVerificationError
 */
export function verifyWebhook({ headers, body }: ReceivedWebhook, secret: string, nowMs = Date.now()): unknown {
  const clock = vi.spyOn(Date, 'now').mockReturnValue(nowMs);
  try {
    return new Webhook(secret).verify(body, headers as Record<string, string>);
  } finally {
    clock.mockRestore();
  }
}
