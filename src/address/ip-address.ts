/** 2 (IPv4) or 8 (IPv6) groups of 16 bits. 2 for an IPv4 address mapped to IPv6. */
export type IpAddress = readonly number[];
/** The addresses that begin with the first `bits` of `base`. The other bits of `base` are 0. */
export type IpBlock = readonly [base: IpAddress, bits: number];

/** Longer than any address with its zone and port. */
const MAX_LENGTH = 100;
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;

/** Parses an address from a header or a socket. It may be mapped, in brackets, or with a zone or a port. */
export function parseIp(text: string): IpAddress | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const [, bracketed, dotted] = /^(?:\[([^\]]*:[^\]]*)\]|([\d.]+))(?::\w+)?$/.exec(text) ?? [];
  const address = parseBareIp(bracketed ?? dotted ?? text);
  return address && unmapped(address);
}

/** Parses an address without brackets or a port. */
export function parseBareIp(text: string): IpAddress | undefined {
  return text.includes(':') ? parseIPv6(text) : parseIPv4(text);
}

/** Only dotted decimal: some programs read a leading zero as octal, others ignore it. */
function parseIPv4(text: string): IpAddress | undefined {
  if (!IPV4.test(text)) return undefined;
  const [a = 0, b = 0, c = 0, d = 0] = text.split('.').map(Number);
  return [(a << 8) | b, (c << 8) | d];
}

function parseIPv6(text: string): IpAddress | undefined {
  const zone = text.indexOf('%');
  const bare = zone < 0 ? text : text.slice(0, zone);
  const gap = bare.indexOf('::');
  const front = parseGroups(gap < 0 ? bare : bare.slice(0, gap), gap < 0);
  const back = gap < 0 ? [] : parseGroups(bare.slice(gap + 2), true);
  if (front === undefined || back === undefined) return undefined;
  const missing = 8 - front.length - back.length;
  // Two colons replace at least one group.
  if (gap < 0 ? missing !== 0 : missing < 1) return undefined;
  for (let i = 0; i < missing; i++) front.push(0);
  return [...front, ...back];
}

/** @param isLast whether the last two groups may be in dotted decimal */
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

/**
 * The IPv4 address, if it is mapped to IPv6. Otherwise all IPv4 clients of a dual-stack server would be in one IPv6
 * block, and so be one client.
 */
export function unmapped(address: IpAddress): IpAddress {
  const isMapped = address.length === 8 && address.every((group, i) => i > 5 || group === (i === 5 ? 0xffff : 0));
  return isMapped ? address.slice(6) : address;
}

export function isInside(address: IpAddress, [base, bits]: IpBlock): boolean {
  return address.length === base.length && base.every((group, i) => group === (groupOf(address, i) & mask(bits, i)));
}

/** The address with 0 in place of every bit after the first `bits`. */
export function masked(address: IpAddress, bits: number): number[] {
  return address.map((group, i) => group & mask(bits, i));
}

/** The mask of one group, for a prefix of so many bits of the whole address. */
function mask(bits: number, at: number): number {
  return 0xffff & (0xffff0000 >> Math.min(16, Math.max(0, bits - 16 * at)));
}

function groupOf(address: IpAddress, at: number): number {
  return address[at] as number;
}

/** The text of an IPv4 address, or of the IPv6 block with this prefix that an address is in. */
export function blockName(address: IpAddress, prefix: number): string {
  if (address.length === 2) return address.map((group) => `${group >> 8}.${group & 0xff}`).join('.');
  const text = shortened(masked(address, prefix));
  return prefix === 128 ? text : `${text}/${prefix}`;
}

/** Writes an address as RFC 5952 says: the first of the longest runs of two or more zeros is replaced by `::`. */
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
