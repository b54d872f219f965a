import { describe, expect, it } from 'vitest';
import { type ClientIpOptions, createClientIp } from '../src/client-ip.ts';

const PROXY = '10.0.0.1';
const OTHER_PROXY = '10.0.0.2';

/** What is told of a client behind what the proxies wrote. */
function tell(options: ClientIpOptions, connected: string | undefined, field?: string, name = 'x-forwarded-for') {
  return createClientIp(options)(connected, new Headers(field === undefined ? {} : { [name]: field }));
}

describe('without proxies', () => {
  it.each<[string | undefined, string | undefined]>([
    ['203.0.113.9', '203.0.113.9'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['::ffff:cb00:7109', '203.0.113.9'],
    ['0:0:0:0:0:FFFF:CB00:7109', '203.0.113.9'],
    ['fe80::1%eth0', 'fe80::/64'],
    ['::1', '::/64'],
    ['', undefined],
    ['/run/app.sock', undefined],
    [undefined, undefined],
  ])('%s is %s', (connected, client) => expect(tell({}, connected)).toBe(client));

  it('no header is believed', () => {
    expect(tell({}, '203.0.113.9', '198.51.100.1')).toBe('203.0.113.9');
    expect(tell({ trustedProxies: [] }, '203.0.113.9', '198.51.100.1')).toBe('203.0.113.9');
  });

  it('CVE-2026-30827: IPv4 clients of a dual-stack server are not one client, in whatever form they come', () => {
    const clients = ['::ffff:c0a8:1', '::ffff:c0a8:2', '::ffff:192.168.0.3'].map((one) => tell({}, one));
    expect(clients).toEqual(['192.168.0.1', '192.168.0.2', '192.168.0.3']);
  });

  it('a whole /64 is one client, its neighbour another; the prefix is yours to set', () => {
    const [one, other] = ['2001:db8::1', '2001:db8::ffff:ffff:ffff:ffff'];
    expect(tell({}, one)).toBe(tell({}, other));
    expect(tell({}, '2001:db8:0:1::1')).not.toBe(tell({}, one));
    expect(tell({ ipv6Prefix: 56 }, '2001:db8:0:1ff::1')).toBe('2001:db8:0:100::/56');
    expect(tell({ ipv6Prefix: 128 }, one)).toBe('2001:db8::1');
    expect(tell({ ipv6Prefix: 1 }, 'ffff::')).toBe('8000::/1');
    expect(tell({ ipv6Prefix: 1 }, '203.0.113.9')).toBe('203.0.113.9');
  });
});

describe('proxies by count', () => {
  it('the client is as many entries from the end as there are proxies', () => {
    const row = '6.6.6.6, 203.0.113.9, 10.0.0.2';
    expect(tell({ trustedProxies: 1 }, PROXY, row)).toBe('10.0.0.2');
    expect(tell({ trustedProxies: 2 }, PROXY, row)).toBe('203.0.113.9');
  });

  it('what a client wrote to the left of it does not count', () => {
    const clients = ['', '6.6.6.6, ', '7.7.7.7,,, ', '::1, unknown, ", '].map((forged) =>
      tell({ trustedProxies: 1 }, PROXY, `${forged}203.0.113.9`),
    );
    expect(new Set(clients)).toEqual(new Set(['203.0.113.9']));
  });

  it('fewer entries than proxies: the furthest one known', () => {
    expect(tell({ trustedProxies: 3 }, PROXY, '203.0.113.9')).toBe('203.0.113.9');
    expect(tell({ trustedProxies: 3 }, PROXY)).toBe(PROXY);
    expect(tell({ trustedProxies: 3 }, PROXY, '')).toBe(PROXY);
  });

  it('a Unix socket is a proxy too', () => {
    expect(tell({ trustedProxies: 1 }, undefined, '203.0.113.9')).toBe('203.0.113.9');
    expect(tell({ trustedProxies: 1 }, undefined)).toBeUndefined();
  });
});

describe('proxies by address', () => {
  const blocks = { trustedProxies: ['10.0.0.0/8', '2001:db8:ffff::/48'] };

  it('the client is the last that is no proxy', () => {
    expect(tell(blocks, PROXY, `6.6.6.6, 203.0.113.9, ${OTHER_PROXY}`)).toBe('203.0.113.9');
    expect(tell(blocks, '2001:db8:ffff::7', '6.6.6.6, 203.0.113.9')).toBe('203.0.113.9');
  });

  it('whoever comes past the proxies is not believed', () => {
    expect(tell(blocks, '203.0.113.9', '198.51.100.1')).toBe('203.0.113.9');
    expect(tell(blocks, '11.0.0.1', '198.51.100.1')).toBe('11.0.0.1');
    expect(tell(blocks, undefined, '198.51.100.1')).toBeUndefined();
  });

  it('a proxy is known in its mapped form', () => {
    expect(tell(blocks, '::ffff:10.0.0.1', '203.0.113.9')).toBe('203.0.113.9');
    expect(tell(blocks, '::ffff:a00:1', '203.0.113.9')).toBe('203.0.113.9');
    expect(tell({ trustedProxies: ['::ffff:10.0.0.0/104'] }, PROXY, '203.0.113.9')).toBe('203.0.113.9');
    expect(tell({ trustedProxies: ['::ffff:a00:1'] }, PROXY, '203.0.113.9')).toBe('203.0.113.9');
  });

  it('nobody but proxies in the row: the first of them', () => {
    expect(tell(blocks, PROXY, '10.0.0.9, 10.0.0.8')).toBe('10.0.0.9');
  });

  it('single addresses and the well-known names will do', () => {
    expect(tell({ trustedProxies: [PROXY] }, PROXY, '203.0.113.9')).toBe('203.0.113.9');
    expect(tell({ trustedProxies: [PROXY] }, OTHER_PROXY, '203.0.113.9')).toBe(OTHER_PROXY);
    for (const [name, address] of [
      ['loopback', '127.0.0.1'],
      ['loopback', '::1'],
      ['linklocal', 'fe80::1%eth0'],
      ['uniquelocal', '192.168.3.4'],
    ] as const) {
      expect(tell({ trustedProxies: [name] }, address, '203.0.113.9')).toBe('203.0.113.9');
    }
  });
});

describe('what stands in the row', () => {
  it.each([
    ['203.0.113.9:4711', '203.0.113.9'],
    ['[2001:db8::1]', '2001:db8::/64'],
    ['[2001:db8::1]:4711', '2001:db8::/64'],
    ['[fe80::1%25eth0]:80', 'fe80::/64'],
    ['[::ffff:203.0.113.9]:80', '203.0.113.9'],
    ['2001:DB8::1', '2001:db8::/64'],
  ])('%s is read', (entry, client) => expect(tell({ trustedProxies: 1 }, PROXY, entry)).toBe(client));

  it.each([
    'unknown',
    '_hidden',
    '203.0.113',
    '203.0.113.9.1',
    '203.0.113.256',
    '0203.0.113.9',
    '0xcb.0.113.9',
    '3405803785',
    '203.0.113.9:',
    '203.0.113.9:80:80',
    '[203.0.113.9]',
    '[2001:db8::1',
    '2001:db8::1]',
    '2001:db8::1::2',
    '2001:db8:::1',
    '%eth0',
    '::%'.repeat(50),
    'x'.repeat(10_000),
  ])('%s is no address: the client is the proxy that wrote it, never what stands before', (entry) => {
    expect(tell({ trustedProxies: 2 }, PROXY, `6.6.6.6, ${entry}`)).toBe(PROXY);
    expect(tell({ trustedProxies: ['10.0.0.0/8'] }, PROXY, `6.6.6.6, ${entry}`)).toBe(PROXY);
  });
});

describe('Forwarded (RFC 7239)', () => {
  const options: ClientIpOptions = { trustedProxies: 1, header: 'Forwarded' };
  const forwarded = (field: string) => tell(options, PROXY, field, 'forwarded');

  it.each([
    ['for=203.0.113.9', '203.0.113.9'],
    ['For=203.0.113.9;proto=https;by=10.0.0.1;', '203.0.113.9'],
    ['proto=https; FOR="203.0.113.9:4711"', '203.0.113.9'],
    ['for="[2001:db8::1]:4711"', '2001:db8::/64'],
    ['for="[2001:db8::1]:_obfuscated"', '2001:db8::/64'],
    ['for=6.6.6.6, for=203.0.113.9', '203.0.113.9'],
    // An open quote of the client's does not swallow what the proxy wrote behind it.
    ['for="6.6.6.6, for=203.0.113.9', '203.0.113.9'],
    ['", for="203.0.113.9"', '203.0.113.9'],
  ])('%s is %s', (field, client) => expect(forwarded(field)).toBe(client));

  it.each([
    'for=unknown',
    'for=',
    'for',
    'proto=https',
    'for=[2001:db8::1]',
    'for=203.0.113.9;for=6.6.6.6',
    'for="203.0.113.9',
    // A host that the client chose, in quotes, cannot bring in an element of its own.
    'for=203.0.113.9;host="a, for=6.6.6.6"',
    'for=203.0.113.9;host="a, for=6.6.6.6;x=\\""',
  ])('%s: the proxy itself', (field) => expect(forwarded(field)).toBe(PROXY));

  it('the other header is not looked at', () => {
    expect(tell(options, PROXY, '203.0.113.9', 'x-forwarded-for')).toBe(PROXY);
  });
});

describe('fields', () => {
  it("are Headers or Node's, one or a list; a field called get is a field", () => {
    const clientIp = createClientIp({ trustedProxies: 1, header: 'CF-Connecting-IP' });
    expect(clientIp(PROXY, { 'cf-connecting-ip': '203.0.113.9', get: 'x' })).toBe('203.0.113.9');
    expect(clientIp(PROXY, { 'cf-connecting-ip': ['6.6.6.6', '203.0.113.9'] })).toBe('203.0.113.9');
    expect(clientIp(PROXY, {})).toBe(PROXY);
  });
});

describe('options that make no sense are refused at once', () => {
  it.each<[string, unknown]>([
    ['trustedProxies', -1],
    ['trustedProxies', 1.5],
    ['trustedProxies', true],
    ['trustedProxies', '10.0.0.0/8'],
    ['trustedProxies[0]', ['10.0.0.0/33']],
    ['trustedProxies[0]', ['::/129']],
    ['trustedProxies[0]', ['::ffff:10.0.0.0/95']],
    ['trustedProxies[1]', ['loopback', 'local']],
    ['trustedProxies[0]', ['constructor']],
    ['trustedProxies[0]', [7]],
    ['trustedProxies[0]', ['10.0/8']],
    // Everybody.
    ['trustedProxies[0]', ['0.0.0.0/0']],
    ['trustedProxies[0]', ['::/0']],
    ['ipv6Prefix', 0],
    ['ipv6Prefix', 129],
    ['ipv6Prefix', '64'],
    ['header', 'x forwarded'],
    ['header', ''],
  ])('%s: %j', (place, value) => {
    const [option = ''] = place.split('[');
    expect(() => createClientIp({ [option]: value })).toThrow(
      expect.objectContaining({ code: 'invalid_option', option: place }),
    );
  });

  it('and so is a misspelt one', () => {
    expect(() => createClientIp({ trustProxy: 1 } as never)).toThrow(/trustProxy: unknown option/);
  });
});
