import { BlockList, isIPv4 } from 'node:net';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type AddressClass, canonicalHost, classOfAddress } from '../../src/security/addresses.ts';

const CLASSES: Readonly<Record<AddressClass, readonly string[]>> = {
  public: [
    ...['1.1.1.1', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255', '128.0.0.0'],
    ...['169.253.255.255', '169.255.0.0', '172.15.255.255', '172.32.0.0', '192.167.255.255', '192.169.0.0'],
    ...['198.17.255.255', '198.20.0.0', '223.255.255.255'],
    // Mapped, and behind NAT64.
    ...['::ffff:8.8.8.8', '::ffff:808:808', '0:0:0:0:0:ffff:808:808', '64:ff9b::8.8.8.8', '64:ff9b::808:808'],
    ...['2001:200::1', '2606:4700:4700::1111', '2a00:1450:4001::1', '2003::1'],
  ],
  private: [
    ...['10.0.0.0', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.0.1', '127.0.0.1', '127.255.255.255'],
    ...['100.64.0.0', '100.127.255.255', '198.18.0.1', '198.19.255.255'],
    ...['::1', '0:0:0:0:0:0:0:1', 'fc00::1', 'fd12:3456::1', 'fdff:ffff::'],
    ...[
      '::ffff:127.0.0.1',
      '::ffff:7f00:1',
      '::FFFF:10.0.0.1',
      '::ffff:c0a8:1',
      '0000:0000:0000:0000:0000:ffff:7f00:0001',
    ],
  ],
  never: [
    // This network, link-local, protocol assignments, documentation, 6to4 relays, multicast, reserved, broadcast.
    ...['0.0.0.0', '0.255.255.255', '169.254.0.1', '192.0.0.8', '192.0.2.1', '198.51.100.1', '203.0.113.1'],
    ...['192.88.99.1', '224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255'],
    // Metadata: AWS, Google, Azure and OpenStack; ECS; EKS; Oracle; Alibaba; Azure.
    ...['169.254.169.254', '169.254.170.2', '169.254.170.23', '192.0.0.192', '100.100.100.200', '168.63.129.16'],
    ...['fd00:ec2::254', 'fd00:ec2::23', 'fd20:ce::254'],
    ...['::ffff:169.254.169.254', '::ffff:a9fe:a9fe', '::ffff:0.0.0.0', '::ffff:0:0', '::ffff:6464:64c8'],
    // Behind NAT64 there is no private address.
    ...[
      '64:ff9b::127.0.0.1',
      '64:ff9b::7f00:1',
      '64:ff9b::a9fe:a9fe',
      '64:ff9b::10.0.0.1',
      '64:ff9b::',
      '64:ff9b:1::1',
    ],
    // 6to4, Teredo, IPv4-compatible, IPv4-translated.
    ...['2002:7f00:1::', '2002:a9fe:a9fe::1', '2002:808:808::1', '2001:0:4136:e378::1'],
    ...['::127.0.0.1', '::7f00:1', '::10.0.0.1', '::8.8.8.8', '::ffff:0:127.0.0.1', '::ffff:0:8.8.8.8'],
    // Unspecified, link-local (also with a zone), site-local, multicast, discard, documentation, segment routing.
    ...['::', '0::0', 'fe80::1', 'fe80::1%lo', 'febf::1', 'fec0::1', 'ff02::1', 'ff0e::1', '100::1'],
    ...['2001:db8::1', '3fff::1', '5f00::1', '4000::1', 'e000::1', '::2', '::1%lo', '2606:4700::1%eth0'],
    // Not addresses as Node spells them.
    ...['', 'localhost', '127.1', '0x7f.0.0.1', '[::1]', '8.8.8.8 ', '8.8.8.8:25', '08.8.8.8'],
  ],
};

describe('an address is judged', () => {
  test.each(Object.entries(CLASSES).flatMap(([kind, list]) => list.map((address) => [address, kind])))(
    '%s: %s',
    (address, kind) => expect(classOfAddress(address)).toBe(kind),
  );

  test('an IPv4 address and its mapped form have the same class, however it is written', () => {
    const byte = fc.nat(255);
    fc.assert(
      fc.property(byte, byte, byte, byte, (...bytes) => {
        const address = bytes.join('.');
        const [a = 0, b = 0, c = 0, d = 0] = bytes;
        const hex = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
        const kind = classOfAddress(address);
        for (const mapped of [`::ffff:${address}`, `::FFFF:${hex}`, `0:0:0:0:0:ffff:${hex}`])
          expect(classOfAddress(mapped)).toBe(kind);
        expect(classOfAddress(`64:ff9b::${hex}`)).toBe(kind === 'public' ? 'public' : 'never');
        for (const tunnel of [`2002:${hex}::`, `2002:${hex}::1`]) expect(classOfAddress(tunnel)).toBe('never');
      }),
    );
  });

  test('only what is in 2000::/3, mapped or behind NAT64 is public', () => {
    const outside = new BlockList();
    outside.addSubnet('2000::', 3, 'ipv6');
    fc.assert(
      fc.property(fc.ipV6(), (address) => {
        if (/^::ffff:|^64:ff9b:/i.test(address) || isIPv4(address) || outside.check(address, 'ipv6')) return;
        expect(classOfAddress(address)).not.toBe('public');
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('a host is read', () => {
  test.each([
    ['mail.example.com', 'mail.example.com'],
    ['MAIL.Example.COM.', 'mail.example.com'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['_imaps._tcp.example.com', '_imaps._tcp.example.com'],
    ['localhost.', 'localhost'],
    ['[::1]', '::1'],
    ['2001:db8::1', '2001:db8::1'],
    // Every spelling of 127.0.0.1 that some system understands.
    ...['127.1', '127.0.1', '0x7f.1', '0x7f000001', '0X7F.0.0.1', '2130706433', '017700000001', '0177.0.0.1'].map(
      (text) => [text, '127.0.0.1'],
    ),
    ...['127.0.0.1.', '１２７.0.0.1', '127。0。0。1', '[127.0.0.1]', '①②⑦.0.0.1'].map((text) => [text, '127.0.0.1']),
    ['0', '0.0.0.0'],
  ])('%s is %s', (text, host) => expect(canonicalHost(text)).toBe(host));

  test.each([
    ...[
      '',
      '.',
      '..',
      '[]',
      'a..b',
      '.a',
      'a b',
      ' a',
      'a\t',
      'a\r\nb',
      'a\0',
      'a/b',
      'a\\b',
      'a?b',
      'a#b',
      'a@b',
      'a:80',
    ],
    ...[
      'user:pw@host',
      'a%2eb',
      '127%2e0.0.1',
      '::1]',
      '[::1',
      '[::1]:80',
      'fe80::1%25lo]',
      '256.1.1.1',
      '1.2.3.4.5',
      'host.0x7f',
    ],
    ...['a'.repeat(254), '<a>', 'a|b', 'a^b', '\u2028', 'http://a', '127.0.0.1:80'],
  ])('%j is no host', (text) => expect(canonicalHost(text)).toBeUndefined());
});
