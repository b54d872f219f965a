/**
 * Identifies clients by address, also behind proxies that you trust.
 * @module headgate/client-ip
 */

import { OptionError } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import { checkOptions } from '../base/options.ts';
import { createMisuseLog } from '../core/misuse.ts';
import {
  blockName,
  type IpAddress,
  type IpBlock,
  isInside,
  masked,
  parseBareIp,
  parseIp,
  unmapped,
} from './ip-address.ts';
import { ProxyChecks } from './proxy-checks.ts';

/** Options of {@link createClientIp}. */
export interface ClientIpOptions {
  /**
   * The trusted proxies in front of this server: their number, or a list of their addresses. The list may contain CIDR
   * blocks, single addresses, and the names `loopback`, `linklocal` and `uniquelocal`. No other peer's header is
   * believed. Use a number only if every request passes all the proxies: a client that can connect to this server, or
   * to a later proxy, directly can claim any address.
   * @default 0: the client is the peer of the connection, and no header is read
   */
  readonly trustedProxies?: number | readonly string[] | undefined;
  /**
   * The header in which your proxies write the address of their peer: `x-forwarded-for`, `forwarded` (RFC 7239), or
   * another header with a list of addresses, such as `cf-connecting-ip`. If your proxies forward this header unchanged,
   * clients can forge it. Another header than the default needs `trustedProxies`.
   * @default 'x-forwarded-for'
   */
  readonly header?: string | undefined;
  /**
   * Leading bits of an IPv6 address that identify a client. A client can use every address of its block: a host gets a
   * /64, a household usually gets a /56.
   * @default 56
   */
  readonly ipv6Prefix?: number | undefined;
  /**
   * Whether a warning is logged if requests seem to come through a proxy that is not trusted, or if trusted proxies do
   * not write the header, or are fewer than their number (`HG_PROXY_NOT_TRUSTED`, `HG_PROXY_FIELD_MISSING` and
   * `HG_TOO_FEW_PROXIES` in `docs/misuse.md`).
   * @default true
   */
  readonly validate?: boolean | undefined;
  /**
   * Is called with these warnings, as a text and a `MisuseWarning`; false: nothing is logged.
   * @default console.error
   */
  readonly logger?: Logger | false | undefined;
}

/** The headers of a request: `Headers`, or the `headers` of a Node request. */
export type RequestFields =
  | {
      /** The value of the header, by name in any case; null if it is missing. */
      get(name: string): string | null;
    }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Returns the client's address, always in the same form: `192.0.2.1`, `2001:db8:0:100::/56`. It returns undefined only
 * if the connection is without an address, as with a Unix socket, and no counted proxy wrote one.
 * @param connected the address of the peer of the connection
 */
export type ClientIp = (connected: string | undefined | null, fields: RequestFields) => string | undefined;

const NAMED: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1/128'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
};

const FORWARDED = 'forwarded';
const USUAL_FIELD = 'x-forwarded-for';
const TOKEN = "[!#$%&'*+.^_`|~\\w-]+";
/**
 * A parameter of `Forwarded`. A quoted string may not contain quotes and backslashes, because no address contains them.
 */
const PARAMETER = new RegExp(`^(${TOKEN})=(?:(${TOKEN})|"([^"\\\\]*)")$`);

/**
 * Creates a function that identifies clients by address, for limits without an account.
 *
 * Each proxy appends to the list it received. So the list is read from its end, for as long as the proxies are trusted;
 * any client may have written the entries before that. If a trusted proxy wrote something that is not an address, the
 * client is that proxy: its clients then share one allowance, instead of having none.
 * @throws OptionError
 * @example
 * ```ts
 * const clientIp = createClientIp({ trustedProxies: ['10.0.0.0/8'] });
 * const gate = createGate<IncomingMessage>({
 *   limiter, route, account: (request) => clientIp(request.socket.remoteAddress, request.headers),
 * });
 * ```
 */
export function createClientIp(options: ClientIpOptions = {}): ClientIp {
  checkOptions(options, ['trustedProxies', 'header', 'ipv6Prefix', 'validate', 'logger'], 'options');
  const { trustedProxies = 0, header = USUAL_FIELD, ipv6Prefix = 56 } = options;
  if (typeof header !== 'string' || !new RegExp(`^${TOKEN}$`).test(header)) {
    throw new OptionError('header', header, 'must be the name of a header');
  }
  if (!Number.isInteger(ipv6Prefix) || ipv6Prefix < 1 || ipv6Prefix > 128) {
    throw new OptionError('ipv6Prefix', ipv6Prefix, 'must be a whole number of bits from 1 to 128');
  }
  const name = header.toLowerCase();
  const read = name === FORWARDED ? forwardedFor : (entry: string) => entry;
  const isTrusted = trustCheck(trustedProxies);
  const misuse = createMisuseLog(options);
  const trustsNone = trustedProxies === 0 || (Array.isArray(trustedProxies) && trustedProxies.length === 0);
  if (trustsNone && name !== USUAL_FIELD)
    throw new OptionError('header', header, 'needs trustedProxies: it is read only from proxies that are trusted');
  const checks = misuse && new ProxyChecks(misuse, name, trustedProxies);
  return (connected, fields) => {
    let hop = 0;
    let address = parsePeer(connected);
    // If proxies are counted, a connection without an address counts as a proxy too.
    if (!isTrusted(address, hop)) {
      if (checks?.looksAtOthers && typeof fields === 'object' && fields !== null)
        checks.untrusted((field) => headerValue(fields, field) !== '');
      return address && blockName(address, ipv6Prefix);
    }
    const entries = listOf(fields, name);
    checks?.trusted(entries);
    for (let at = entries.length - 1; at >= 0; at--) {
      const next = parseIp(read(entries[at] as string) ?? '');
      if (next === undefined) break;
      address = next;
      hop += 1;
      if (!isTrusted(address, hop)) break;
    }
    return address && blockName(address, ipv6Prefix);
  };
}

/**
 * Returns a check whether a proxy is trusted.
 * @throws OptionError
 */
function trustCheck(trusted: number | readonly string[]): (address: IpAddress | undefined, hop: number) => boolean {
  if (Array.isArray(trusted)) {
    const blocks = trusted.flatMap((text: unknown, i) => {
      const place = `trustedProxies[${i}]`;
      const named = typeof text === 'string' && Object.hasOwn(NAMED, text) ? NAMED[text] : undefined;
      return (named ?? [text]).map((one) => parseBlock(one, place));
    });
    return (address) => address !== undefined && blocks.some((block) => isInside(address, block));
  }
  if (!Number.isInteger(trusted) || (trusted as number) < 0) {
    throw new OptionError('trustedProxies', trusted, 'must be the number of proxies, or a list of their addresses');
  }
  return (_address, hop) => hop < (trusted as number);
}

/** @throws OptionError */
function parseBlock(text: unknown, place: string): IpBlock {
  const [, host = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(String(text)) ?? [];
  const given = parseBareIp(host);
  if (typeof text !== 'string' || given === undefined) {
    throw new OptionError(place, text, `must be an address, a CIDR block, or one of ${Object.keys(NAMED).join(', ')}`);
  }
  const base = unmapped(given);
  const maxLength = base.length * 16;
  // The prefix of a mapped address includes the 96 bits before the IPv4 address.
  const length = bits === undefined ? maxLength : Number(bits) - (given.length - base.length) * 16;
  if (length < 1 || length > maxLength) {
    const reason =
      'must be a block within its address family; a block of all addresses would let every client choose its address';
    throw new OptionError(place, text, reason);
  }
  return [masked(base, length), length];
}

/** The `for` of one element of `Forwarded`; undefined if there is none, or if the element is malformed. */
function forwardedFor(element: string): string | undefined {
  let address: string | undefined;
  for (const text of element.split(';')) {
    if (text.trim() === '') continue;
    const parameter = PARAMETER.exec(text.trim());
    if (parameter === null) return undefined;
    const [, name = '', token, quoted] = parameter;
    if (name.toLowerCase() !== 'for') continue;
    if (address !== undefined) return undefined;
    address = token ?? quoted;
  }
  return address;
}

/** @throws OptionError */
function parsePeer(connected: unknown): IpAddress | undefined {
  if (typeof connected === 'string') return parseIp(connected);
  if (connected === undefined || connected === null) return undefined;
  throw new OptionError('connected', connected, 'must be an address: clientIp(socket.remoteAddress, headers)');
}

/**
 * The elements of a header. In `Forwarded` an empty element does not count (RFC 9110, 5.6.1.2); in a list of addresses
 * it is a peer without an address.
 * @throws OptionError
 */
function listOf(fields: RequestFields, name: string): readonly string[] {
  if (typeof fields !== 'object' || fields === null)
    throw new OptionError('fields', fields, 'must be headers: clientIp(socket.remoteAddress, headers)');
  const elements = headerValue(fields, name)
    .split(',')
    .map((element) => element.trim());
  return name === FORWARDED ? elements.filter((element) => element !== '') : elements;
}

function headerValue(fields: RequestFields, name: string): string {
  const value = typeof fields.get === 'function' ? fields.get(name) : (fields as Record<string, unknown>)[name];
  return Array.isArray(value) ? value.join() : String(value ?? '');
}
