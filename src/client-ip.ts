/**
 * Clients told apart by address, behind proxies that you trust.
 * @module headgate/client-ip
 */

import { OptionError } from './core/errors.ts';
import { checkOptions } from './core/options.ts';

/** Options of {@link createClientIp}. */
export interface ClientIpOptions {
  /**
   * The proxies in front of this server, nobody else's word about addresses being taken: how many there are, or their addresses, as CIDR blocks,
   * single addresses, or `loopback`, `linklocal` and `uniquelocal`. Count only where nobody can reach this server, or a proxy of the row, by a
   * shorter way: whoever can, says who he is.
   * @default 0: the client is whoever is connected, and no header is read
   */
  readonly trustedProxies?: number | readonly string[] | undefined;
  /**
   * The field in which your proxies say whom they had connected: `x-forwarded-for`, `forwarded` (RFC 7239), or
   * another one with addresses in it, such as `cf-connecting-ip`. One that your proxies pass on untouched is the client's to forge.
   * @default 'x-forwarded-for'
   */
  readonly header?: string | undefined;
  /**
   * Leading bits of an IPv6 address that make one client: a household or a host gets a whole /64, and picks a new address as it likes.
   * @default 64
   */
  readonly ipv6Prefix?: number | undefined;
}

/** The fields of a request: `Headers`, or what Node has. */
export type RequestFields =
  | {
      /** The field's value, by name in any case; null where it is absent. */
      get(name: string): string | null;
    }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * The client's address in one form for each client: `192.0.2.1`, `2001:db8:0:1::/64`. Undefined only where the server does not know who is
 * connected, and counts no proxies, as behind a Unix socket.
 * @param connected the address at the other end of the connection
 */
export type ClientIp = (connected: string | undefined | null, fields: RequestFields) => string | undefined;

/** Its 2 or 8 groups of 16 bits; a mapped IPv4 address has 2. */
type Address = readonly number[];
type Block = readonly [base: Address, bits: number];

const NAMED: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1/128'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
};

/** Longer than any address with its zone and port. */
const MAX_LENGTH = 100;
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;
const TOKEN = "[!#$%&'*+.^_`|~\\w-]+";
/** A parameter of `Forwarded`. A quoted string may hold anything but quotes and backslashes, of which no address has any. */
const PARAMETER = new RegExp(`^(${TOKEN})=(?:(${TOKEN})|"([^"\\\\]*)")$`);

/**
 * Makes what tells clients apart by address, for limits that have no account to go by.
 *
 * Proxies append to what they were sent, so the list is read from its end, as far as trust goes: what stands before that, anybody may have written. Where
 * a trusted proxy wrote something that is no address, the client is that proxy: a shared allowance rather than a free one.
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
  checkOptions(options, ['trustedProxies', 'header', 'ipv6Prefix'], 'options');
  const { trustedProxies = 0, header = 'x-forwarded-for', ipv6Prefix = 64 } = options;
  if (typeof header !== 'string' || !new RegExp(`^${TOKEN}$`).test(header)) {
    throw new OptionError('header', header, 'must be the name of a field');
  }
  if (!Number.isInteger(ipv6Prefix) || ipv6Prefix < 1 || ipv6Prefix > 128) {
    throw new OptionError('ipv6Prefix', ipv6Prefix, 'must be a whole number of bits from 1 to 128');
  }
  const name = header.toLowerCase();
  const read = name === 'forwarded' ? forwardedFor : (entry: string) => entry;
  const isTrusted = trust(trustedProxies);
  return (connected, fields) => {
    let hop = 0;
    let address = parseAddress(connected ?? '');
    // Counted, a connection without an address is a proxy like any other.
    if (!isTrusted(address, hop)) return address && keyOf(address, ipv6Prefix);
    const entries = fieldOf(fields, name).split(',');
    for (let at = entries.length - 1; at >= 0; at--) {
      const next = parseAddress(read((entries[at] as string).trim()) ?? '');
      if (next === undefined) break;
      address = next;
      hop += 1;
      if (!isTrusted(address, hop)) break;
    }
    return address && keyOf(address, ipv6Prefix);
  };
}

/** @throws OptionError */
function trust(trusted: number | readonly string[]): (address: Address | undefined, hop: number) => boolean {
  if (Array.isArray(trusted)) {
    const blocks = trusted.flatMap((text: unknown, i) => {
      const place = `trustedProxies[${i}]`;
      const named = typeof text === 'string' && Object.hasOwn(NAMED, text) ? NAMED[text] : undefined;
      return (named ?? [text]).map((one) => parseBlock(one, place));
    });
    return (address) => address !== undefined && blocks.some((block) => isInside(address, block));
  }
  if (!Number.isInteger(trusted) || (trusted as number) < 0) {
    throw new OptionError('trustedProxies', trusted, 'must be a count of proxies, or a list of their addresses');
  }
  return (_address, hop) => hop < (trusted as number);
}

/** @throws OptionError */
function parseBlock(text: unknown, place: string): Block {
  const [, host = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(String(text)) ?? [];
  const given = parseBare(host);
  if (typeof text !== 'string' || given === undefined) {
    throw new OptionError(place, text, `must be an address, a CIDR block, or one of ${Object.keys(NAMED).join(', ')}`);
  }
  const base = unmapped(given);
  const most = base.length * 16;
  // The block of a mapped address is counted from its 96 leading bits.
  const length = bits === undefined ? most : Number(bits) - (given.length - base.length) * 16;
  if (length < 1 || length > most) {
    const reason = 'must be a block within its address family; to trust everybody is to let clients say who they are';
    throw new OptionError(place, text, reason);
  }
  return [masked(base, length), length];
}

function isInside(address: Address, [base, bits]: Block): boolean {
  return address.length === base.length && base.every((group, i) => group === (groupOf(address, i) & mask(bits, i)));
}

function masked(address: Address, bits: number): number[] {
  return address.map((group, i) => group & mask(bits, i));
}

/** Of the group at this place, where so many leading bits of the address count. */
function mask(bits: number, at: number): number {
  return 0xffff & (0xffff0000 >> Math.min(16, Math.max(0, bits - 16 * at)));
}

function groupOf(address: Address, at: number): number {
  return address[at] as number;
}

/** An address as it stands in a header or comes from a socket: perhaps mapped, in brackets, with a zone or a port. */
function parseAddress(text: string): Address | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const [, bracketed, dotted] = /^(?:\[([^\]]*:[^\]]*)\]|([\d.]+))(?::\w+)?$/.exec(text) ?? [];
  const address = parseBare(bracketed ?? dotted ?? text);
  return address && unmapped(address);
}

function parseBare(text: string): Address | undefined {
  return text.includes(':') ? parseIPv6(text) : parseIPv4(text);
}

/** Dotted decimal alone: a zero in front means octal to some, and nothing to others. */
function parseIPv4(text: string): Address | undefined {
  if (!IPV4.test(text)) return undefined;
  const [a = 0, b = 0, c = 0, d = 0] = text.split('.').map(Number);
  return [(a << 8) | b, (c << 8) | d];
}

function parseIPv6(text: string): Address | undefined {
  const zone = text.indexOf('%');
  const bare = zone < 0 ? text : text.slice(0, zone);
  const gap = bare.indexOf('::');
  const front = parseGroups(gap < 0 ? bare : bare.slice(0, gap), gap < 0);
  const back = gap < 0 ? [] : parseGroups(bare.slice(gap + 2), true);
  if (front === undefined || back === undefined) return undefined;
  const missing = 8 - front.length - back.length;
  // Two colons stand for one group or more.
  if (gap < 0 ? missing !== 0 : missing < 1) return undefined;
  for (let i = 0; i < missing; i++) front.push(0);
  return [...front, ...back];
}

/** @param isLast the last of them may be two, in dotted decimal */
function parseGroups(text: string, isLast: boolean): number[] | undefined {
  const groups: number[] = [];
  if (text === '') return groups;
  const parts = text.split(':');
  const dotted = isLast && text.includes('.') ? parseIPv4(parts.pop() as string) : [];
  for (const part of parts) {
    if (!/^[\da-f]{1,4}$/i.test(part)) return undefined;
    groups.push(Number.parseInt(part, 16));
  }
  return dotted && [...groups, ...dotted];
}

/** IPv4 clients of a dual-stack server look like neighbours in one IPv6 block. */
function unmapped(address: Address): Address {
  const isMapped = address.length === 8 && address.every((group, i) => i > 5 || group === (i === 5 ? 0xffff : 0));
  return isMapped ? address.slice(6) : address;
}

function keyOf(address: Address, prefix: number): string {
  if (address.length === 2) return address.map((group) => `${group >> 8}.${group & 0xff}`).join('.');
  const text = shortened(masked(address, prefix));
  return prefix === 128 ? text : `${text}/${prefix}`;
}

/** As RFC 5952 writes it: the first of the longest rows of two zeros or more left out. */
function shortened(groups: readonly number[]): string {
  let [start, length] = [0, 1];
  for (let i = 0; i < groups.length; i++) {
    let end = i;
    while (groups[end] === 0) end++;
    if (end - i > length) [start, length] = [i, end - i];
    i = Math.max(i, end - 1);
  }
  const text = (part: readonly number[]) => part.map((group) => group.toString(16)).join(':');
  return length === 1 ? text(groups) : `${text(groups.slice(0, start))}::${text(groups.slice(start + length))}`;
}

/** The `for` of one element of `Forwarded`; undefined where it says none, or is no element. */
function forwardedFor(element: string): string | undefined {
  let found: string | undefined;
  for (const text of element.split(';')) {
    if (text.trim() === '') continue;
    const parameter = PARAMETER.exec(text.trim());
    if (parameter === null) return undefined;
    const [, name = '', token, quoted] = parameter;
    if (name.toLowerCase() !== 'for') continue;
    if (found !== undefined) return undefined;
    found = token ?? quoted;
  }
  return found;
}

function fieldOf(fields: RequestFields, name: string): string {
  const value = typeof fields.get === 'function' ? fields.get(name) : (fields as Record<string, unknown>)[name];
  return Array.isArray(value) ? value.join() : String(value ?? '');
}
