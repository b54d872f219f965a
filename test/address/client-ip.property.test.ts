import { BlockList, isIP } from 'node:net';
import fc from 'fast-check';
import { randomRuns } from 'headgate-testbed/nightly';
import { describe, expect, it } from 'vitest';
import { createClientIp } from '../../src/address/client-ip.ts';

/** Text that is an address, or almost one. */
const nearly = fc
  .array(
    fc.constantFrom('::', ':', '.', '0', '1', '01', 'ffff', 'FFFF', '00001', 'g', '255', '256', '1.2.3.4', 'c0a8', ' '),
    { minLength: 1, maxLength: 12 },
  )
  .map((pieces) => pieces.join(''));
const address = fc.oneof(fc.ipV4(), fc.ipV6(), fc.ipV6().map(mapped));
const prefixed = (bits: number) => createClientIp({ ipv6Prefix: bits });

/** Makes a mapped IPv4 address. */
function mapped(text: string): string {
  return `::ffff:${text.includes('.') ? text.slice(text.lastIndexOf(':') + 1) : 'c0a8:1'}`;
}

const familyOf = (text: string) => (text.includes(':') ? 'ipv6' : 'ipv4');
const clientFamily = (text: string) => (text.includes(':') && !isMapped(text) ? 'ipv6' : 'ipv4');
const isMapped = (text: string) => new URL(`http://[${text}]`).hostname.startsWith('[::ffff:');

describe('compared with Node', () => {
  it('the same texts are addresses', () => {
    fc.assert(
      fc.property(fc.oneof(nearly, fc.ipV4(), fc.ipV6(), fc.ipV4Extended(), fc.string()), (text) => {
        fc.pre(!text.includes('%'));
        // Node does not accept brackets and ports, which are allowed in a header.
        fc.pre(!/[[\]]|^[\d.]+:\w+$/.test(text));
        expect(prefixed(64)(text, {}) !== undefined).toBe(isIP(text) !== 0);
      }),
      { numRuns: randomRuns(800) },
    );
  });

  it('an address is written as in a URL (RFC 5952)', () => {
    const sparse = fc
      .array(fc.constantFrom('0', '0', '0', '1', 'c0A8', '00ff'), { minLength: 8, maxLength: 8 })
      .map((groups) => groups.join(':'));
    fc.assert(
      fc.property(fc.oneof(sparse, fc.ipV6()), (text) => {
        fc.pre(!isMapped(text));
        expect(`[${prefixed(128)(text, {})}]`).toBe(new URL(`http://[${text}]`).hostname);
      }),
      { numRuns: randomRuns(800) },
    );
  });

  it('two addresses are one client if and only if one is in the block of the other', () => {
    const pair = fc.tuple(fc.ipV6(), fc.ipV6(), fc.integer({ min: 1, max: 128 }));
    fc.assert(
      fc.property(pair, ([one, other, bits]) => {
        fc.pre(!isMapped(one) && !isMapped(other));
        const block = new BlockList();
        block.addSubnet(one, bits, 'ipv6');
        const clientIp = prefixed(bits);
        expect(clientIp(one, {}) === clientIp(other, {})).toBe(block.check(other, 'ipv6'));
      }),
      { numRuns: randomRuns(600) },
    );
  });

  it('a proxy is trusted if and only if it is in a block', () => {
    const blocks = fc.array(
      fc.oneof(
        fc.tuple(fc.ipV4(), fc.integer({ min: 1, max: 32 })),
        fc.tuple(
          fc.ipV6().filter((text) => !isMapped(text)),
          fc.integer({ min: 1, max: 128 }),
        ),
      ),
      { maxLength: 4 },
    );
    fc.assert(
      fc.property(blocks, address, (given, proxy) => {
        // For Node a wide IPv6 block also contains IPv4 addresses; here a block contains only its own family.
        const list = new BlockList();
        for (const [base, bits] of given) {
          if (familyOf(base) === clientFamily(proxy)) list.addSubnet(base, bits, familyOf(base));
        }
        const clientIp = createClientIp({ trustedProxies: given.map(([base, bits]) => `${base}/${bits}`) });
        const isTrusted = clientIp(proxy, { 'x-forwarded-for': '198.51.100.77' }) === '198.51.100.77';
        fc.pre(clientIp(proxy, {}) !== '198.51.100.77');
        expect(isTrusted).toBe(list.check(proxy, familyOf(proxy)));
      }),
      { numRuns: randomRuns(600) },
    );
  });
});

describe('whatever a client writes into the header', () => {
  const proxies = ['10.0.0.1', '10.0.0.2', '10.0.0.3'];

  it('the client is the peer of the first trusted proxy, by count and by address, in either header', () => {
    const forged = fc.oneof(
      fc.array(fc.oneof(address, nearly), { maxLength: 5 }).map((entries) => entries.join(', ')),
      fc.string({ unit: fc.constantFrom('"', '\\', ',', ';', '=', ' ', 'for=6.6.6.6', 'a'), maxLength: 12 }),
    );
    fc.assert(
      fc.property(forged, fc.ipV4(), fc.integer({ min: 1, max: 3 }), (written, client, count) => {
        fc.pre(!client.startsWith('10.'));
        const trusted = [client, ...proxies.slice(0, count - 1)];
        const connected = proxies[count - 1];
        const xff = { 'x-forwarded-for': [written, ...trusted].join(', ') };
        const forwarded = { forwarded: [written, ...trusted.map((one) => `for="${one}:80"`)].join(', ') };
        expect(createClientIp({ trustedProxies: count })(connected, xff)).toBe(client);
        expect(createClientIp({ trustedProxies: ['10.0.0.0/8'] })(connected, xff)).toBe(client);
        expect(createClientIp({ trustedProxies: count, header: 'forwarded' })(connected, forwarded)).toBe(client);
      }),
      { numRuns: randomRuns(300) },
    );
  });

  it('there is always a client, and the name of a client identifies the same client', () => {
    fc.assert(
      fc.property(fc.string(), address, fc.nat(4), (written, connected, trustedProxies) => {
        const client = createClientIp({ trustedProxies })(connected, { 'x-forwarded-for': written });
        expect(client).toMatch(/^(\d+\.){3}\d+$|^[0-9a-f:]+\/56$/);
        expect(prefixed(56)(client?.replace('/56', ''), {})).toBe(client);
      }),
      { numRuns: randomRuns(300) },
    );
  });
});
