import { describe, expect, it } from 'vitest';
import { type NodeRequest, nodePeer } from '../../src/adapters/node/http.ts';
import { createClientIp } from '../../src/address/client-ip.ts';
import { createAddressGate } from '../../src/address/gate.ts';
import { createLimiter } from '../../src/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';
import { addressCases, fromAddresses, HOUSES, NEXT_NETWORK } from '../support/address-cases.ts';

/** Addresses of 2001:db8:1::/48, each 256 in other /56, each 4,096 in other /64. */
const addressOf = (i: number): string =>
  `2001:db8:1:${(((i & 255) << 8) | ((i >> 8) & 15)).toString(16)}::${(i >> 12).toString(16)}`;
const MANY = 20_000;
const PEER = { address: () => '203.0.113.1', fields: () => ({}) };

describe('limits by address, in memory', () => {
  addressCases(() => createMemoryStore({ clock: createFakeClock() }));
});

describe('the records of a memory store', () => {
  it('were as many as a network has addresses, if each address is an account', async () => {
    const store = createMemoryStore({ maxKeys: 2_000 });
    const limiter = createLimiter({ store, limits: { allMethods: ['100/1m'] } });
    const clientIp = createClientIp({ ipv6Prefix: 64 });
    for (let i = 0; i < 2_000; i++) limiter.consumeSync({ account: clientIp(addressOf(i), {}) ?? '', route: '*' });
    expect(() => limiter.consumeSync({ account: '203.0.113.1', route: '*' })).toThrow(/full/);
  });

  it.each([
    // 256 blocks of /56 and the network itself.
    { ipv6Prefix: undefined, most: 257 },
    // 16 times 100 requests, each from an address of its own, and the network itself.
    { ipv6Prefix: 64, most: 1_601 },
    { ipv6Prefix: 128, most: 1_601 },
  ])('20,000 addresses of a /48 take at most $most, with ipv6Prefix: $ipv6Prefix', async ({ ipv6Prefix, most }) => {
    const store = createMemoryStore({ maxKeys: 2_000, clock: createFakeClock() });
    const ask = fromAddresses({ perAddress: ['100/1m'], ipv6Prefix, store });
    let accepted = 0;
    for (let i = 0; i < MANY; i++) if ((await ask(addressOf(i))).status === 200) accepted++;
    expect(accepted).toBe(1_600);
    expect(store.stats()).toMatchObject({ keys: most, refused: 0 });
    // Everybody else still gets in.
    expect((await ask(NEXT_NETWORK)).status).toBe(200);
    expect((await ask('203.0.113.1')).status).toBe(200);
  });
});

describe('options', () => {
  it('perNetwork: [] is no limit of networks; neither is there one for blocks of /48 and wider', async () => {
    for (const others of [{ perNetwork: [] }, { ipv6Prefix: 48 }]) {
      const ask = fromAddresses({ perAddress: ['1/1m'], ...others });
      const statuses = [];
      for (const address of HOUSES) statuses.push((await ask(address)).status);
      expect(statuses).toEqual('ipv6Prefix' in others ? [200, 429, 429] : [200, 200, 200]);
    }
  });

  it('the max of a network stays a number that can be counted', async () => {
    const ask = fromAddresses({ perAddress: [{ max: Number.MAX_SAFE_INTEGER, durationMs: 1_000 }] });
    expect((await ask(HOUSES[0])).status).toBe(200);
  });

  it('the options that a route has for another gate neither lift the limit nor fail', async () => {
    const fail = (): never => {
      throw new Error('this request has no user');
    };
    for (const options of [
      { finalCost: () => 0 },
      { limits: ['100/1m'] },
      { provider: fail },
      { plan: fail },
      { requireKey: true },
      { onNoAccount: 'pass' as const },
    ]) {
      const gate = createAddressGate<object>({ perAddress: ['1/1m'], logger: false }, PEER).with(options);
      const kinds = [];
      for (let i = 0; i < 2; i++) {
        const entry = await gate.enter({});
        if (entry.kind === 'proceed') entry.settle({ status: 200 });
        kinds.push(entry.kind === 'answer' ? entry.reply.status : entry.kind);
      }
      expect(kinds, JSON.stringify(options)).toEqual(['proceed', 429]);
    }
  });

  it('an `address` that returns a list is a 500, whose log says what reads lists', async () => {
    const logged: string[] = [];
    const address = () => '203.0.113.9, 198.51.100.7';
    const logger = (_message: string, error: unknown): void => void logged.push(String(error));
    const gate = createAddressGate<object>({ perAddress: ['1/1m'], address, logger }, PEER);
    expect(await gate.enter({})).toMatchObject({ kind: 'answer', reply: { status: 500 } });
    expect(logged).toEqual([
      'OptionError: address: must return one address, not a list: trustedProxies reads the list of your proxies, got "203.0.113.9, 198.51.100.7"',
    ]);
  });

  it('a proxy that `address` has taken into account causes no warning, unlike one that nobody knows of', async () => {
    const behindProxy = {
      address: () => '10.0.0.1',
      fields: () => ({ 'x-forwarded-for': '203.0.113.1' }),
    };
    for (const [address, codes] of [
      [() => '203.0.113.1', []],
      // As `request.ip` of an Express that trusts no proxy.
      [() => '10.0.0.1', ['HG_PROXY_NOT_TRUSTED']],
      [undefined, ['HG_PROXY_NOT_TRUSTED']],
    ] as const) {
      const logged: unknown[] = [];
      const logger = (_: string, error?: unknown) => void logged.push((error as { code: string }).code);
      await createAddressGate<object>({ perAddress: ['9/1m'], address, logger }, behindProxy).enter({});
      expect(logged).toEqual(codes);
    }
  });

  it('an address can be given for a request that a platform without sockets has made up', async () => {
    const gate = createAddressGate<NodeRequest>(
      { perAddress: ['1/1m'], address: () => '203.0.113.1', logger: false },
      nodePeer((request) => request),
    );
    const request = { headers: {} } as NodeRequest;
    expect((await gate.enter(request)).kind).toBe('proceed');
    expect(await gate.enter(request)).toMatchObject({ reply: { status: 429 } });
  });

  it('an address of another kind can be given; it must be an address', async () => {
    const gate = createAddressGate<{ ip: string }>(
      { perAddress: ['1/1m'], address: ({ ip }) => ip, logger: false },
      { fields: () => ({}) },
    );
    const kinds = [];
    for (const ip of ['203.0.113.1', '203.0.113.1', 'somewhere']) {
      const entry = await gate.enter({ ip });
      kinds.push(entry.kind === 'answer' ? entry.reply.status : entry.kind);
    }
    expect(kinds).toEqual(['proceed', 429, 500]);
  });

  it.each<[string, object, string]>([
    ['perAddress', { perAddress: '100/1m' }, 'perAddress: a limit is an array of windows'],
    ['perAddress[0]', { perAddress: ['100'] }, 'perAddress[0]: a window is max/duration'],
    ['perAddress', { perAddress: [] }, 'perAddress: must have a window, such as "100/1m"'],
    [
      'perAddress',
      { perAddress: ['9 bytes/1m'] },
      'perAddress: limits by address count requests only, got "9 bytes/1m"',
    ],
    ['perNetwork', { perNetwork: ['9 bytes/1m'] }, 'perNetwork: limits by address count requests only'],
    ['perNetwork[0]', { perNetwork: ['x'] }, 'perNetwork[0]: a window is max/duration'],
    ['perNetwork', { perNetwork: ['9/1m'], ipv6Prefix: 48 }, 'perNetwork: needs an ipv6Prefix of more than 48 bits'],
    ['address', { address: '203.0.113.1' }, 'address: must be a function of the request'],
    ['store', { store: {} }, 'store: must be a store of limits, such as createMemoryStore() returns'],
    ['ipv6Prefix', { ipv6Prefix: 129 }, 'ipv6Prefix: must be a whole number of bits from 1 to 128'],
    ['trustedProxies', { trustedProxies: true }, 'trustedProxies: must be the number of proxies'],
    ['headers', { headers: 'none' }, 'headers: must be a list of'],
    ['perAdress', { perAdress: ['1/1m'] }, 'options.perAdress: unknown option'],
  ])('a wrong %s is refused when the limits are mounted', (_, options, message) => {
    expect(() => fromAddresses({ perAddress: ['1/1m'], ...options } as never)).toThrow(message);
  });
});
