import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Passage } from 'headgate/gate';
import { afterFile } from 'headgate-testbed/after-file';
import { createExchange, type Exchange } from '../../src/exchange/exchange.ts';
import type { ForwardSettings } from '../../src/proxy/proxy.ts';

/** A server that only creates an exchange per request, on the port that it returns. */
export async function serveExchanges(onExchange: (exchange: Exchange) => void): Promise<number> {
  const server = createServer((request, response) => onExchange(createExchange('id-1', request, response, false)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterFile(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

/** A passage of a request that is not limited, with `rest` over it. */
export const passageOf = (rest: Partial<Passage> = {}): Passage => ({
  kind: 'proceed',
  decision: undefined,
  headers: {},
  settle: () => ({ headers: {}, stripRateLimit: false }),
  dispatch: async () => {},
  noteOutcome: () => {},
  cooldown: async () => undefined,
  leave: async () => {},
  abandon: async () => undefined,
  ...rest,
});

/** How requests are forwarded, if a test is not about it. */
export const FORWARD_SETTINGS: ForwardSettings = {
  forwardFields: new Set(),
  timeoutMs: 5_000,
  answerMs: 5_000,
  maxBodyBytes: 100,
  onHead: () => {},
  onFailure: () => {},
};
