import { describe, expect, it } from 'vitest';
import { type ClientIpOptions, createClientIp } from '../../src/address/client-ip.ts';

const PROXY = '10.0.0.1';
const OTHER_PROXY = '10.0.0.2';

/** The client that headgate identifies when the proxies wrote `field`. */
function identify(options: ClientIpOptions, connected: string | undefined, field?: string, name = 'x-forwarded-for') {
  return createClientIp({ logger: false, ...options })(
    connected,
    new Headers(field === undefined ? {} : { [name]: field }),
  );
}

describe('without proxies', () => {
  it.each<[string | undefined, string | undefined]>([
    ['203.0.113.9', '203.0.113.9'],
    ['2001:db8:1:2ab:3:4:5:6', '2001:db8:1:200::/56'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['::ffff:cb00:7109', '203.0.113.9'],
    ['0:0:0:0:0:FFFF:CB00:7109', '203.0.113.9'],
    ['fe80::1%eth0', 'fe80::/56'],
    ['::1', '::/56'],
    ['', undefined],
    ['/run/app.sock', undefined],
    [undefined, undefined],
  ])('%s is %s', (connected, client) => expect(identify({}, connected)).toBe(client));

  it('no header is read', () => {
    expect(identify({}, '203.0.113.9', '198.51.100.1')).toBe('203.0.113.9');
    expect(identify({ trustedProxies: [] }, '203.0.113.9', '198.51.100.1')).toBe('203.0.113.9');
  });

  it('CVE-2026-30827: IPv4 clients of a dual-stack server are different clients, in any form of address', () => {
    const clients = ['::ffff:c0a8:1', '::ffff:c0a8:2', '::ffff:192.168.0.3'].map((one) => identify({}, one));
    expect(clients).toEqual(['192.168.0.1', '192.168.0.2', '192.168.0.3']);
  });

  it('a whole /56 is one client, and the next /56 another one; the prefix is an option', () => {
    const [one, other] = ['2001:db8::1', '2001:db8:0:ff:ffff:ffff:ffff:ffff'];
    expect(identify({}, one)).toBe(identify({}, other));
    expect(identify({}, '2001:db8:0:100::1')).not.toBe(identify({}, one));
    expect(identify({ ipv6Prefix: 64 }, '2001:db8:0:1ff::1')).toBe('2001:db8:0:1ff::/64');
    expect(identify({ ipv6Prefix: 128 }, one)).toBe('2001:db8::1');
    expect(identify({ ipv6Prefix: 1 }, 'ffff::')).toBe('8000::/1');
    expect(identify({ ipv6Prefix: 1 }, '203.0.113.9')).toBe('203.0.113.9');
  });
});

describe('proxies by count', () => {
  it('the client is the entry as far from the end as there are proxies', () => {
    const list = '6.6.6.6, 203.0.113.9, 10.0.0.2';
    expect(identify({ trustedProxies: 1 }, PROXY, list)).toBe('10.0.0.2');
    expect(identify({ trustedProxies: 2 }, PROXY, list)).toBe('203.0.113.9');
  });

  it('entries that a client wrote before that are ignored', () => {
    const clients = ['', '6.6.6.6, ', '7.7.7.7,,, ', '::1, unknown, ", '].map((forged) =>
      identify({ trustedProxies: 1 }, PROXY, `${forged}203.0.113.9`),
    );
    expect(new Set(clients)).toEqual(new Set(['203.0.113.9']));
  });

  it('with fewer entries than proxies, the client is the first entry', () => {
    expect(identify({ trustedProxies: 3 }, PROXY, '203.0.113.9')).toBe('203.0.113.9');
    expect(identify({ trustedProxies: 3 }, PROXY)).toBe(PROXY);
    expect(identify({ trustedProxies: 3 }, PROXY, '')).toBe(PROXY);
  });

  it('a connection over a Unix socket counts as a proxy', () => {
    expect(identify({ trustedProxies: 1 }, undefined, '203.0.113.9')).toBe('203.0.113.9');
    expect(identify({ trustedProxies: 1 }, undefined)).toBeUndefined();
  });
});

describe('proxies by address', () => {
  const blocks = { trustedProxies: ['10.0.0.0/8', '2001:db8:ffff::/48'] };

  it('the client is the last entry that is not a proxy', () => {
    expect(identify(blocks, PROXY, `6.6.6.6, 203.0.113.9, ${OTHER_PROXY}`)).toBe('203.0.113.9');
    expect(identify(blocks, '2001:db8:ffff::7', '6.6.6.6, 203.0.113.9')).toBe('203.0.113.9');
  });

  it('the header of a client that connects directly is ignored', () => {
    expect(identify(blocks, '203.0.113.9', '198.51.100.1')).toBe('203.0.113.9');
    expect(identify(blocks, '11.0.0.1', '198.51.100.1')).toBe('11.0.0.1');
    expect(identify(blocks, undefined, '198.51.100.1')).toBeUndefined();
  });

  it('a proxy is recognised in its mapped form', () => {
    expect(identify(blocks, '::ffff:10.0.0.1', '203.0.113.9')).toBe('203.0.113.9');
    expect(identify(blocks, '::ffff:a00:1', '203.0.113.9')).toBe('203.0.113.9');
    expect(identify({ trustedProxies: ['::ffff:10.0.0.0/104'] }, PROXY, '203.0.113.9')).toBe('203.0.113.9');
    expect(identify({ trustedProxies: ['::ffff:a00:1'] }, PROXY, '203.0.113.9')).toBe('203.0.113.9');
  });

  it('if the list has only proxies, the client is the first of them', () => {
    expect(identify(blocks, PROXY, '10.0.0.9, 10.0.0.8')).toBe('10.0.0.9');
  });

  it('a proxy may be given as a single address or a well-known name', () => {
    expect(identify({ trustedProxies: [PROXY] }, PROXY, '203.0.113.9')).toBe('203.0.113.9');
    expect(identify({ trustedProxies: [PROXY] }, OTHER_PROXY, '203.0.113.9')).toBe(OTHER_PROXY);
    for (const [name, address] of [
      ['loopback', '127.0.0.1'],
      ['loopback', '::1'],
      ['linklocal', 'fe80::1%eth0'],
      ['uniquelocal', '192.168.3.4'],
    ] as const) {
      expect(identify({ trustedProxies: [name] }, address, '203.0.113.9')).toBe('203.0.113.9');
    }
  });
});

describe('an entry of the list', () => {
  it.each([
    ['203.0.113.9:4711', '203.0.113.9'],
    ['[2001:db8::1]', '2001:db8::/56'],
    ['[2001:db8::1]:4711', '2001:db8::/56'],
    ['[fe80::1%25eth0]:80', 'fe80::/56'],
    ['[::ffff:203.0.113.9]:80', '203.0.113.9'],
    ['2001:DB8::1', '2001:db8::/56'],
  ])('%s is an address', (entry, client) => expect(identify({ trustedProxies: 1 }, PROXY, entry)).toBe(client));

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
  ])('%s is not an address: the client is the proxy that wrote it, never an entry before it', (entry) => {
    expect(identify({ trustedProxies: 2 }, PROXY, `6.6.6.6, ${entry}`)).toBe(PROXY);
    expect(identify({ trustedProxies: ['10.0.0.0/8'] }, PROXY, `6.6.6.6, ${entry}`)).toBe(PROXY);
  });
});

describe('Forwarded (RFC 7239)', () => {
  const options: ClientIpOptions = { trustedProxies: 1, header: 'Forwarded' };
  const forwarded = (field: string) => identify(options, PROXY, field, 'forwarded');

  it.each([
    ['for=203.0.113.9', '203.0.113.9'],
    ['For=203.0.113.9;proto=https;by=10.0.0.1;', '203.0.113.9'],
    ['proto=https; FOR="203.0.113.9:4711"', '203.0.113.9'],
    ['for="[2001:db8::1]:4711"', '2001:db8::/56'],
    ['for="[2001:db8::1]:_obfuscated"', '2001:db8::/56'],
    ['for=6.6.6.6, for=203.0.113.9', '203.0.113.9'],
    // Empty elements of a list do not count (RFC 9110, 5.6.1.2).
    ['for=6.6.6.6, , for=203.0.113.9,, ', '203.0.113.9'],
    [',for=203.0.113.9', '203.0.113.9'],
    // A quote that the client opened does not hide what the proxy wrote after it.
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
    // A quoted host that the client chose cannot add an element.
    'for=203.0.113.9;host="a, for=6.6.6.6"',
    'for=203.0.113.9;host="a, for=6.6.6.6;x=\\""',
  ])('%s: the client is the proxy itself', (field) => expect(forwarded(field)).toBe(PROXY));

  it('the other header is not read', () => {
    expect(identify(options, PROXY, '203.0.113.9', 'x-forwarded-for')).toBe(PROXY);
  });
});

describe('wrong arguments', () => {
  const clientIp = createClientIp({ trustedProxies: 1 }) as (...given: unknown[]) => unknown;

  it('a request in place of an address', () => {
    expect(() => clientIp({ headers: {} }, {})).toThrow(
      /^connected: must be an address: clientIp\(socket.remoteAddress, headers\), got an object/,
    );
  });

  it('an address without headers', () => {
    expect(() => clientIp('10.0.0.1')).toThrow(
      /^fields: must be headers: clientIp\(socket.remoteAddress, headers\), got undefined/,
    );
  });
});

describe('headers', () => {
  it('may be Headers or the headers of Node, with one value or a list; a header may be called get', () => {
    const clientIp = createClientIp({ trustedProxies: 1, header: 'CF-Connecting-IP' });
    expect(clientIp(PROXY, { 'cf-connecting-ip': '203.0.113.9', get: 'x' })).toBe('203.0.113.9');
    expect(clientIp(PROXY, { 'cf-connecting-ip': ['6.6.6.6', '203.0.113.9'] })).toBe('203.0.113.9');
    expect(clientIp(PROXY, {})).toBe(PROXY);
  });
});

describe('invalid options are refused at once', () => {
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
    // These blocks contain all addresses.
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

  it.each([{}, { trustedProxies: 0 }, { trustedProxies: [] }])(
    'a header that is never read is refused: %j',
    (proxies) => {
      const reason =
        'header: needs trustedProxies: it is read only from proxies that are trusted, got "CF-Connecting-IP"';
      expect(() => createClientIp({ ...proxies, header: 'CF-Connecting-IP' })).toThrow(reason);
      expect(createClientIp({ ...proxies, header: 'X-Forwarded-For' })(PROXY, {})).toBe(PROXY);
    },
  );

  it('a misspelt option is refused', () => {
    expect(() => createClientIp({ trustProxy: 1 } as never)).toThrow(/trustProxy: unknown option/);
  });
});

/** A function that identifies clients, and the codes of the warnings that it logs. */
function watched(options: ClientIpOptions = {}) {
  const codes: string[] = [];
  const logger = (_: string, warning: unknown): void => void codes.push((warning as { code: string }).code);
  return { clientIp: createClientIp({ logger, ...options }), codes };
}

describe('HG_PROXY_FIELD_MISSING', () => {
  const options = [
    { trustedProxies: 1, header: 'x-forwarded-fro' },
    { trustedProxies: [PROXY] },
    { trustedProxies: [PROXY], header: 'forwarded' },
  ];

  it.each(options)('is logged once if none of 1,000 requests from a proxy has the field: %j', (given) => {
    const { clientIp, codes } = watched(given);
    for (let i = 0; i < 999; i++) clientIp(PROXY, { other: '203.0.113.9' });
    expect(codes).toEqual([]);
    for (let i = 0; i < 2_000; i++) clientIp(PROXY, {});
    expect(codes).toEqual(['HG_PROXY_FIELD_MISSING']);
  });

  it.each(options)('is not logged if one of them has it, or with validate: false: %j', (given) => {
    const { clientIp, codes } = watched(given);
    for (let i = 0; i < 2_000; i++)
      clientIp(PROXY, i === 5 ? { [given.header ?? 'x-forwarded-for']: '203.0.113.9' } : {});
    const off = watched({ ...given, validate: false });
    for (let i = 0; i < 2_000; i++) off.clientIp(PROXY, {});
    expect([codes, off.codes]).toEqual([[], []]);
  });
});

describe('HG_TOO_FEW_PROXIES', () => {
  const list = (length: number) => ({ 'x-forwarded-for': Array(length).fill('203.0.113.9').join(', ') });

  it('is logged once if a list has fewer addresses than proxies are counted, also after forged lists', () => {
    const { clientIp, codes } = watched({ trustedProxies: 3 });
    for (const length of [0, 3, 4]) clientIp(PROXY, list(length));
    expect(codes).toEqual([]);
    for (const length of [2, 1]) clientIp(PROXY, list(length));
    expect(codes).toEqual(['HG_TOO_FEW_PROXIES']);
  });

  it('is not logged if proxies are listed, after 1,000 requests, or with validate: false', () => {
    const listed = watched({ trustedProxies: [PROXY, OTHER_PROXY] });
    const late = watched({ trustedProxies: 2 });
    const off = watched({ trustedProxies: 2, validate: false });
    for (let i = 0; i < 1_000; i++) late.clientIp(PROXY, list(2));
    for (const { clientIp } of [listed, late, off]) clientIp(PROXY, list(1));
    expect([listed.codes, late.codes, off.codes]).toEqual([[], [], []]);
  });
});

describe('HG_PROXY_NOT_TRUSTED', () => {
  it('is logged once after 100 requests with the field if other proxies are trusted, and none of them connects', () => {
    const { clientIp, codes } = watched({ trustedProxies: [OTHER_PROXY], header: 'cf-connecting-ip' });
    const fields = { 'cf-connecting-ip': '203.0.113.9' };
    for (let i = 0; i < 99; i++) {
      clientIp(PROXY, fields);
      clientIp(PROXY, { 'x-forwarded-for': '203.0.113.9' });
    }
    expect(codes).toEqual([]);
    for (let i = 0; i < 300; i++) expect(clientIp(PROXY, fields)).toBe(PROXY);
    expect(codes).toEqual(['HG_PROXY_NOT_TRUSTED']);
  });

  it('is not logged if one request comes from a trusted proxy: others forge the field', () => {
    const { clientIp, codes } = watched({ trustedProxies: [OTHER_PROXY] });
    const fields = { 'x-forwarded-for': '203.0.113.9' };
    for (let i = 0; i < 300; i++) clientIp(i === 50 ? OTHER_PROXY : PROXY, fields);
    expect(codes).toEqual([]);
  });

  it.each([
    ['x-forwarded-for', {}],
    ['forwarded', { trustedProxies: 0 }],
    ['x-forwarded-for', { trustedProxies: [] }],
  ])('is logged once if a request has %s, and no proxy is trusted: %j', (field, options) => {
    const { clientIp, codes } = watched(options);
    clientIp(PROXY, {});
    expect(codes).toEqual([]);
    expect(clientIp(PROXY, { [field]: '203.0.113.9' })).toBe(PROXY);
    clientIp(PROXY, new Headers({ [field]: '203.0.113.9' }));
    expect(codes).toEqual(['HG_PROXY_NOT_TRUSTED']);
  });

  it('is not logged for one request if proxies are trusted, not after 1,000 requests, and not with validate: false', () => {
    const trusting = watched({ trustedProxies: [OTHER_PROXY] });
    trusting.clientIp(PROXY, { 'x-forwarded-for': '203.0.113.9' });
    const late = watched();
    for (let i = 0; i < 1_000; i++) late.clientIp(PROXY, {});
    late.clientIp(PROXY, { 'x-forwarded-for': '203.0.113.9' });
    const off = watched({ validate: false });
    off.clientIp(PROXY, { 'x-forwarded-for': '203.0.113.9' });
    expect([trusting.codes, late.codes, off.codes]).toEqual([[], [], []]);
  });

  it('headers that cannot be read are no reason to fail, because no header is needed', () => {
    expect(watched().clientIp(PROXY, undefined as never)).toBe(PROXY);
  });
});
