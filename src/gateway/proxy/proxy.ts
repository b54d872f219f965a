import { Pool } from 'undici';
import type { Passage } from '../../gate/gate.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { Forwarding, type ForwardingOptions } from './forwarding.ts';
import { requestFields } from './upstream-fields.ts';

/** Options of {@link createProxy}. */
export interface ProxyOptions extends ForwardingOptions {
  /** `http://host:port/base`, checked. */
  readonly upstream: string;
}

/** Forwards requests to the upstream. */
export interface UpstreamProxy {
  /** Answers the exchange, one way or another; never throws. */
  forward(exchange: Exchange, passage: Passage): void;
  /** Cuts every connection to the upstream. */
  close(): Promise<void>;
}

const MOST_TO_CONNECT_MS = 10_000;
/** Longest silence in the middle of an answer. */
const SILENCE_MS = 300_000;

/** A proxy over a pool of kept connections, one request at a time on each. undici sends nothing twice then: it has no retry of its own. */
export function createProxy(options: ProxyOptions): UpstreamProxy {
  const { origin, pathname } = new URL(options.upstream);
  const base = pathname.replace(/\/$/, '');
  const pool = new Pool(origin, {
    pipelining: 1,
    // Our own timer is exact and covers connecting too.
    headersTimeout: 0,
    bodyTimeout: SILENCE_MS,
    connect: { timeout: MOST_TO_CONNECT_MS },
    // Shorter than the 5 s after which many servers close, so that few requests meet a connection that is just being closed.
    keepAliveTimeout: 4_000,
    keepAliveMaxTimeout: 60_000,
  });
  return {
    forward(exchange, passage) {
      const forwarding = new Forwarding(exchange, passage, options);
      pool.dispatch(
        {
          path: base + (exchange.request.url ?? ''),
          method: exchange.request.method as 'GET',
          headers: requestFields(exchange),
          body: forwarding.body,
          idempotent: false,
        },
        forwarding,
      );
    },
    close: () => pool.destroy(),
  };
}
