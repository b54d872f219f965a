import type { Passage } from 'headgate/gate';
import type { Exchange } from '../exchange/exchange.ts';
import { createProxy, type ForwardSettings, type ProxyOptions, type UpstreamProxy } from './proxy.ts';

/** Options of {@link createUpstreams}. The bounds apply to each upstream. */
export type UpstreamsOptions = Omit<ProxyOptions, 'upstream' | 'onEmpty'>;

/** Forwards requests to any number of upstreams. Connections and bounds are separate per URL. */
export interface Upstreams {
  /** Connections to all upstreams that a request uses. */
  readonly connectionsInUse: number;
  /** Requests that wait for a connection to their upstream. */
  readonly waiting: number;
  /**
   * Forwards the request to the base URL and answers the exchange. Never throws. A request with earlier rules may name
   * a URL that is not kept any more.
   */
  forward(url: string, exchange: Exchange, passage: Passage, settings: ForwardSettings): void;
  /** From now on only these URLs keep idle connections; those to others close as soon as their requests are over. */
  keep(urls: Iterable<string>): void;
  /** Closes every connection at once. */
  close(): Promise<void>;
}

/** Begins without a URL that is kept. */
export function createUpstreams(options: UpstreamsOptions): Upstreams {
  const proxies = new Map<string, UpstreamProxy>();
  let kept: ReadonlySet<string> = new Set();
  let isClosed = false;
  const open = (url: string): UpstreamProxy => {
    const onEmpty = (): void => {
      if (!kept.has(url)) proxies.delete(url);
    };
    const proxy = createProxy({ ...options, upstream: url, onEmpty });
    proxies.set(url, proxy);
    proxy.keep(kept.has(url));
    if (isClosed) void proxy.close();
    return proxy;
  };
  const sum = (count: (proxy: UpstreamProxy) => number): number =>
    [...proxies.values()].reduce((total, proxy) => total + count(proxy), 0);
  return {
    get connectionsInUse() {
      return sum((proxy) => proxy.connectionsInUse);
    },
    get waiting() {
      return sum((proxy) => proxy.waiting);
    },
    forward(url, exchange, passage, settings) {
      (proxies.get(url) ?? open(url)).forward(exchange, passage, settings);
    },
    keep(urls) {
      kept = new Set(urls);
      for (const [url, proxy] of proxies) proxy.keep(kept.has(url));
    },
    async close() {
      isClosed = true;
      await Promise.all([...proxies.values()].map((proxy) => proxy.close()));
    },
  };
}
