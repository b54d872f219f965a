import { Pool } from 'undici';
import type { Passage } from '../../gate/gate.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { Forwarding, type ForwardingOptions } from './forwarding.ts';
import { requestFields } from './upstream-fields.ts';

/** Options of {@link createProxy}. */
export interface ProxyOptions extends ForwardingOptions {
  /** Base URL such as `http://host:port/base`, already checked. */
  readonly upstream: string;
  /** Names in lower case: fields that are forwarded although an upstream may obey them. */
  readonly forwardFields: ReadonlySet<string>;
}

/** Forwards requests to the upstream. */
export interface UpstreamProxy {
  /** Forwards the request and answers the exchange, with the upstream's response or with an error. Never throws. */
  forward(exchange: Exchange, passage: Passage): void;
  /** Closes every connection to the upstream at once. */
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 10_000;
/** Longest pause between two pieces of a response body. */
const BODY_TIMEOUT_MS = 300_000;

/**
 * Creates a proxy with a pool of connections that stay open, one request at a time on each. Like this undici never
 * sends a request twice: it has no retries of its own.
 */
export function createProxy(options: ProxyOptions): UpstreamProxy {
  const { origin, pathname } = new URL(options.upstream);
  const base = pathname.replace(/\/$/, '');
  const pool = new Pool(origin, {
    pipelining: 1,
    // The timer of Forwarding is exact, and it includes the time to connect.
    headersTimeout: 0,
    bodyTimeout: BODY_TIMEOUT_MS,
    connect: { timeout: CONNECT_TIMEOUT_MS },
    // Shorter than the 5 s after which many servers close an idle connection, so that few requests meet a connection
    // that is closing.
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
          headers: requestFields(exchange, options.forwardFields),
          body: forwarding.body,
          idempotent: false,
        },
        forwarding,
      );
    },
    close: () => pool.destroy(),
  };
}
