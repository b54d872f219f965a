import type { OutgoingHttpHeaders } from 'node:http';
import { type Reply, send } from 'headgate-testbed/raw-http';
import { type Document, documentAt, expectDescribed } from './described.ts';
import { TOKEN } from './gateway.ts';
import { type InProcess, startInProcess } from './in-process.ts';

/** The listener that decides for others, on a free port. */
export const DECISIONS = { host: '127.0.0.1', port: 0, secret: 'a-secret-of-receipts-0123456789abcdef' };

/** A reply of the decision API that is as its document says. */
export interface Decided extends Reply {
  // biome-ignore lint/suspicious/noExplicitAny: tests read any answer
  readonly value: any;
}

/** A gateway that decides for others. */
export interface DecidingGateway extends InProcess {
  readonly document: Document;
  /** Sends JSON with the standard key to a path of the decision API. `'x-api-key': undefined` leaves the key out. */
  decide(path: string, json: unknown, headers?: OutgoingHttpHeaders): Promise<Decided>;
}

export async function startDeciding(config: Record<string, unknown>): Promise<DecidingGateway> {
  const gateway = await startInProcess({ decisions: DECISIONS, ...config });
  const document = await documentAt(gateway.decisionsPort);
  return {
    ...gateway,
    document,
    async decide(path, json, headers = {}) {
      const all = { 'x-api-key': TOKEN, 'content-type': 'application/json', ...headers };
      const given = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
      const ask = { method: 'POST', path, headers: given, body: JSON.stringify(json) };
      const reply = await send(gateway.decisionsPort, ask);
      return { ...reply, value: expectDescribed(document, { method: 'POST', path, reply }) };
    },
  };
}
