import type { Passage } from 'headgate/gate';
import { hostAndPort } from '../config/upstreams.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { connectorTo } from './connect.ts';
import { ConnectionPool, type ConnectionPoolOptions } from './connection-pool.ts';
import { Forwarding, type ForwardingOptions } from './forwarding.ts';
import { framingFields, requestFields, requestHead } from './upstream-fields.ts';

/** Options of {@link createProxy}. They stay as they are as long as its connections. */
export interface ProxyOptions extends Omit<ConnectionPoolOptions, 'connect'> {
  /** Base URL such as `http://host:port/base`, already checked. */
  readonly upstream: string;
}

/** How one request is forwarded. */
export interface ForwardSettings extends ForwardingOptions {
  /** Names in lower case: fields that are forwarded although an upstream may obey them. */
  readonly forwardFields: ReadonlySet<string>;
}

/** Forwards requests to the upstream. */
export interface UpstreamProxy {
  /** Connections to the upstream that a request uses. */
  readonly connectionsInUse: number;
  /** Requests that wait for a connection. */
  readonly waiting: number;
  /** Forwards the request and answers the exchange, with the upstream's response or with an error. Never throws. */
  forward(exchange: Exchange, passage: Passage, settings: ForwardSettings): void;
  /** Whether connections stay open without a request, which they do at first. */
  keep(keepsIdle: boolean): void;
  /** Closes every connection to the upstream at once. */
  close(): Promise<void>;
}

/** Creates a proxy with a pool of connections that stay open. It never sends a request twice. */
export function createProxy(options: ProxyOptions): UpstreamProxy {
  const url = new URL(options.upstream);
  const base = url.pathname.replace(/\/$/, '');
  const upstream = hostAndPort(url);
  const pool = new ConnectionPool({ ...options, connect: connectorTo(url) });
  return {
    get connectionsInUse() {
      return pool.inUse;
    },
    get waiting() {
      return pool.waiting;
    },
    forward(exchange, passage, settings) {
      const forwarding = new Forwarding(exchange, passage, settings, upstream);
      const { method = '', url: target = '' } = exchange.request;
      const { body } = forwarding;
      const framing = framingFields(exchange.request, body !== null);
      const passed = requestFields(exchange, settings.forwardFields);
      const fields = forwarding.span?.propagate(passed) ?? passed;
      for (const part of framing) fields.push(part);
      const head = requestHead(`${method} ${base}${target}`, url.host, fields);
      const isChunked = framing.includes('chunked');
      forwarding.send(pool, head === undefined ? undefined : { method, head, body, isChunked });
    },
    keep: (keepsIdle) => pool.keepIdle(keepsIdle),
    close: () => pool.close(),
  };
}
