import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';

/**
 * The class of an address: a host of the internet, a host of one's own network or machine, or an address that is never
 * connected to on purpose (link-local, metadata of clouds, multicast, reserved, tunnels to other addresses).
 */
export type AddressClass = 'public' | 'private' | 'never';

const blocks = (family: 'ipv4' | 'ipv6', subnets: string): BlockList => {
  const list = new BlockList();
  for (const subnet of subnets.trim().split(/\s+/)) {
    const [network = '', bits] = subnet.split('/');
    list.addSubnet(network, Number(bits), family);
  }
  return list;
};

/** RFC 1918, loopback, carrier-grade NAT and VPNs, and the range that some home routers and VPNs map names to. */
const PRIVATE_4 = blocks('ipv4', '10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 127.0.0.0/8 100.64.0.0/10 198.18.0.0/15');

/** IANA's registry of special addresses: all the others that are not reachable from everywhere. */
const NEVER_4 = blocks(
  'ipv4',
  `0.0.0.0/8 169.254.0.0/16 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4
   240.0.0.0/4
   100.100.100.200/32
   168.63.129.16/32`, // The last two are metadata services: of Alibaba, in a private range, and of Azure, in a public one.
);

const PRIVATE_6 = blocks('ipv6', '::1/128 fc00::/7');

/** Everything that is public is in here. */
const GLOBAL_6 = blocks('ipv6', '2000::/3');

const NEVER_6 = blocks(
  'ipv6',
  `2001::/23 2001:db8::/32 2002::/16 3fff::/20
   fd00:ec2::/32
   fd20:ce::/32`, // The last two are the metadata services of AWS and Google, in the private range.
);

/** IPv4 in a socket of IPv6. */
const MAPPED = blocks('ipv6', '::ffff:0:0/96');
/** IPv4 behind a gateway of a network that supports only IPv6 (RFC 6052). Its DNS makes these addresses. */
const NAT64 = blocks('ipv6', '64:ff9b::/96');

/** @param address as Node spells it; anything else is `never` */
export function classOfAddress(address: string): AddressClass {
  if (isIPv4(address)) return classOf4(address);
  // A zone names an interface: only addresses that are not public need one.
  if (!isIPv6(address) || address.includes('%')) return 'never';
  if (MAPPED.check(address, 'ipv6')) return classOf4(lastBits(address));
  if (NAT64.check(address, 'ipv6')) return classOf4(lastBits(address)) === 'public' ? 'public' : 'never';
  if (NEVER_6.check(address, 'ipv6')) return 'never';
  if (PRIVATE_6.check(address, 'ipv6')) return 'private';
  return GLOBAL_6.check(address, 'ipv6') ? 'public' : 'never';
}

function classOf4(address: string): AddressClass {
  if (NEVER_4.check(address)) return 'never';
  return PRIVATE_4.check(address) ? 'private' : 'public';
}

/** The last 32 bits of an IPv6 address, as an IPv4 address. */
function lastBits(address: string): string {
  // The URL writes every form of the address in the same way.
  const groups = new URL(`http://[${address}]`).hostname.slice(1, -1).split(':').slice(-2);
  return groups
    .flatMap((group) => [Number.parseInt(group || '0', 16) >> 8, Number.parseInt(group || '0', 16) & 255])
    .join('.');
}

/** Characters that end or begin another part of a URL, that a URL decodes, or that no host name contains. */
const NOT_IN_HOSTS = /[\p{Cc}\s/?#@\\:%[\]<>^|]/u;

/**
 * A host as it is looked up: in lower case and ASCII, without brackets and the dot of the root. Every spelling of an
 * IPv4 address that some system understands becomes its usual form. Undefined if it is neither a name nor an address.
 */
export function canonicalHost(text: string): string | undefined {
  const bare = /^\[.*\]$/.test(text) ? text.slice(1, -1) : text;
  if (isIPv6(bare)) return bare;
  if (NOT_IN_HOSTS.test(bare) || !URL.canParse(`http://${bare}`)) return undefined;
  const host = new URL(`http://${bare}`).hostname.replace(/\.$/, '');
  return host === '' || host.length > 253 || (isIP(host) === 0 && /^\.|\.\./.test(host)) ? undefined : host;
}
