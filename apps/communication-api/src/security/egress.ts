import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { LRUCache } from 'lru-cache';
import { Agent, type buildConnector } from 'undici';
import type { CustomProxy } from '../domain/proxy.ts';
import { EgressPolicy, type JudgedHost, type PolicyName, type Purpose } from './egress-policy.ts';
import { createLookup, type Lookup } from './lookup.ts';
import { EgressError, type EgressFailure, type Net, type NetTarget } from './net.ts';
import { tunnel } from './tunnel.ts';

export interface EgressOptions {
  readonly policy: PolicyName;
  /** Ports that are allowed beside the ports of the policy. */
  readonly ports?: readonly number[];
  /** Default: as the system does. */
  readonly lookup?: Lookup;
}

/** Longest wait for a connection, with the look-up, the proxy and TLS, in milliseconds. */
const CONNECT_MS = 10_000;
/** How long one of several addresses is tried before the next one, in milliseconds. */
const NEXT_ADDRESS_MS = 1_000;
/** After this silence the system checks whether the other side is still there, in milliseconds. */
const PROBE_MS = 60_000;
/** How long an idle HTTP connection is kept at most, whatever its server allows, in milliseconds. */
const MAX_IDLE_MS = 60_000;
const HTTP = ['http/1.1'];
/** Proxies whose idle HTTP connections are used again. */
const MAX_PROXIES = 100;

/** The connections to the outside: providers, proxies, webhooks and look-ups of mail servers. */
export class Egress {
  readonly #policy: EgressPolicy;
  /** The pools of HTTP connections through a proxy, and of direct connections. */
  readonly #agents = new LRUCache<string, Agent>({ max: MAX_PROXIES, dispose: (agent) => void agent.close() });
  readonly #ways = new LRUCache<string, Net>({ max: MAX_PROXIES });

  constructor({ policy, ports = [], lookup = createLookup() }: EgressOptions) {
    this.#policy = new EgressPolicy(policy, ports, lookup);
  }

  /**
   * The way out through a proxy, or the direct one. The same one for the same proxy, so that its user can compare it.
   */
  through(proxy: CustomProxy | undefined): Net {
    const key = keyOf(proxy);
    const known = this.#ways.get(key);
    if (known !== undefined) return known;
    const way: Net = {
      connect: (target, signal) => this.#connect(target, 'mail', proxy, signal),
      fetch: (url, init) => this.#fetch(url, init, proxy),
    };
    this.#ways.set(key, way);
    return way;
  }

  /** Ends the HTTP connections. */
  async close(): Promise<void> {
    await Promise.all([...this.#agents.values()].map((agent) => agent.destroy()));
  }

  async #fetch(url: string | URL, init: RequestInit = {}, proxy: CustomProxy | undefined): Promise<Response> {
    // `fetch` also reads `data:` and `blob:`.
    if (!/^https?:$/.test(new URL(url).protocol))
      throw new EgressError('forbidden', 'Only http and https are fetched.');
    const options = { ...init, redirect: 'manual' as const, dispatcher: this.#agentOf(proxy) };
    // Node's `fetch` accepts the dispatchers of newer versions of undici, but its types do not.
    return fetch(url, options as unknown as RequestInit).catch((error: unknown) => {
      const cause = error instanceof Error ? error.cause : undefined;
      // The ports that browsers block (https://fetch.spec.whatwg.org/#port-blocking), before anything of ours is asked.
      if (cause instanceof Error && cause.message === 'bad port')
        throw new EgressError('forbidden', 'HTTP does not use this port.', { cause });
      throw cause instanceof EgressError ? cause : error;
    });
  }

  #agentOf(proxy: CustomProxy | undefined): Agent {
    const key = keyOf(proxy);
    const found = this.#agents.get(key);
    if (found !== undefined) return found;
    const connect: buildConnector.connector = ({ hostname, protocol, port }, callback) => {
      const tls = protocol === 'https:';
      const target = { host: hostname, port: Number(port || (tls ? 443 : 80)), tls };
      this.#connect(target, 'web', proxy).then(
        (socket) => callback(null, socket),
        (error: Error) => callback(error, null),
      );
    };
    const agent = new Agent({ connect, keepAliveMaxTimeout: MAX_IDLE_MS });
    this.#agents.set(key, agent);
    return agent;
  }

  /** Connects within {@link CONNECT_MS}, unless the caller's signal is aborted before. */
  async #connect(target: NetTarget, purpose: Purpose, proxy: CustomProxy | undefined, outer?: AbortSignal) {
    const controller = new AbortController();
    const { signal } = controller;
    const abort = (): void => controller.abort();
    const timer = setTimeout(abort, CONNECT_MS);
    outer?.addEventListener('abort', abort, { once: true });
    if (outer?.aborted) abort();
    try {
      return await this.#open(target, purpose, proxy, signal);
    } catch (cause) {
      throw signal.aborted ? new EgressError('timeout', 'The connection was not made in time.', { cause }) : cause;
    } finally {
      clearTimeout(timer);
      outer?.removeEventListener('abort', abort);
    }
  }

  /** @param signal destroys the socket, whatever is being done with it */
  async #open(target: NetTarget, purpose: Purpose, proxy: CustomProxy | undefined, signal: AbortSignal) {
    const { port, tls } = target;
    const host = await this.#judge(target, purpose, signal);
    const socket =
      proxy === undefined
        ? await open(host, port, signal)
        : await tunnel(await this.#openProxy(proxy, signal), proxy, { addresses: host.addresses, port });
    // A mail server may refuse a protocol that is not its own.
    return tls ? secure(socket, host, purpose === 'mail' ? [] : HTTP) : socket;
  }

  async #openProxy(proxy: CustomProxy, signal: AbortSignal): Promise<Socket> {
    const host = await this.#judge(proxy, 'proxy', signal);
    const socket = await open(host, proxy.port, signal);
    return proxy.protocol === 'https' ? secure(socket, host, HTTP) : socket;
  }

  /** A look-up cannot be cancelled, so its caller stops waiting at the signal. */
  #judge({ host, port }: Pick<NetTarget, 'host' | 'port'>, purpose: Purpose, signal: AbortSignal): Promise<JudgedHost> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      this.#policy.judge(host, port, purpose).then(resolve, reject);
    });
  }
}

/** The password is part of it, so that one tenant never gets a connection that another tenant's password opened. */
const keyOf = (proxy: CustomProxy | undefined): string =>
  createHash('sha256')
    .update(JSON.stringify(proxy ?? null))
    .digest('base64');

/** Connects to one of the judged addresses. The name is not looked up again. */
function open({ name, addresses }: JudgedHost, port: number, signal: AbortSignal): Promise<Socket> {
  const judged = addresses.map((address) => ({ address, family: isIP(address) }));
  const lookup: LookupFunction = (_name, { all }, done) =>
    all ? done(null, judged) : done(null, judged[0]?.address ?? '', judged[0]?.family);
  const socket = connectTcp({
    host: name,
    port,
    lookup,
    signal,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_MS,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: PROBE_MS,
  });
  return ready(socket, 'connect', 'refused', 'The connection was refused.');
}

/** @param protocols for ALPN; none: it is not used */
function secure(socket: Socket, { name }: JudgedHost, protocols: string[]): Promise<TLSSocket> {
  // An address may not be sent as the name of the server (RFC 6066, section 3). The certificate must contain it.
  const servername = isIP(name) === 0 ? name : undefined;
  const secured = connectTls({ socket, host: name, servername, ALPNProtocols: protocols });
  return ready(secured, 'secureConnect', 'tls', 'TLS could not be agreed on with the host.');
}

/** Waits until a socket can be used. */
async function ready<Kind extends Socket>(
  socket: Kind,
  event: 'connect' | 'secureConnect',
  failure: EgressFailure,
  message: string,
): Promise<Kind> {
  // A socket that fails before its user listens must not end the process. Its user sees that it is closed.
  socket.on('error', () => undefined);
  try {
    await once(socket, event);
    return socket;
  } catch (cause) {
    socket.destroy();
    throw new EgressError(failure, message, { cause });
  }
}
