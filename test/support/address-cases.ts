import { expect, it } from 'vitest';
import { createAddressGate } from '../../src/address/gate.ts';
import type { AddressLimits } from '../../src/address/options.ts';
import type { LimitStore } from '../../src/core/ports.ts';

/** A gate whose requests are addresses. Returns a function that sends a request from an address. */
export function fromAddresses(options: AddressLimits<string>) {
  const gate = createAddressGate<string>(options, { address: (address) => address, fields: () => ({}) });
  return async (address: string) => {
    const entry = await gate.enter(address);
    const { status, headers } = entry.kind === 'answer' ? entry.reply : { status: 200, headers: entry.headers };
    return { status, headers };
  };
}

/** Addresses of 2001:db8:1::/48, each in a /56 of its own, and one of the next /48. */
export const HOUSES = ['2001:db8:1:100::1', '2001:db8:1:200::1', '2001:db8:1:300::1'] as const;
export const NEXT_NETWORK = '2001:db8:2:100::1';

/** What limits by address do in every store. */
export function addressCases(createStore: () => LimitStore): void {
  it('S5: a request that the address rejects is not charged to the network, and the other way round', async () => {
    const [one, other, third] = HOUSES;
    const ask = fromAddresses({
      perAddress: ['2/1m'],
      perNetwork: ['3/1m'],
      headers: ['x-ratelimit', 'ietf'],
      store: createStore(),
    });
    const left = async (address: string) => {
      const { status, headers } = await ask(address);
      return [status, headers['x-ratelimit-limit'], /r=(\d)/.exec(String(headers.ratelimit))?.[1]];
    };
    expect([await left(one), await left(one)]).toEqual([
      [200, '2', '1'],
      [200, '2', '0'],
    ]);
    // The address rejects: the network still has room for one request.
    for (let i = 0; i < 3; i++) expect(await left(one)).toEqual([429, '2', '0']);
    expect(await left(other)).toEqual([200, '3', '1']);
    // The network rejects: the addresses keep what they have.
    for (let i = 0; i < 3; i++) expect(await left(other)).toEqual([429, '3', '1']);
    for (let i = 0; i < 3; i++) expect(await left(third)).toEqual([429, '3', '2']);
    expect(await left(NEXT_NETWORK)).toEqual([200, '2', '1']);
  });

  it('S6: the address is shown, unless its network has less left', async () => {
    const ask = fromAddresses({ perAddress: ['3/1m', '9/1h'], perNetwork: ['10/1h'], store: createStore() });
    const shown = async (address: string) => {
      const { headers } = await ask(address);
      return [headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']];
    };
    expect([await shown(HOUSES[0]), await shown(HOUSES[0])]).toEqual([
      ['9', '8'],
      ['9', '7'],
    ]);
    expect([await shown(HOUSES[1]), await shown(HOUSES[1])]).toEqual([
      ['10', '7'],
      ['10', '6'],
    ]);
    expect(await shown('203.0.113.1')).toEqual(['9', '8']);
  });

  it('an address of IPv4 is in no network, also in its mapped form', async () => {
    const ask = fromAddresses({ perAddress: ['1/1m'], perNetwork: ['1/1m'], store: createStore() });
    const addresses = ['203.0.113.1', '203.0.113.2', '::ffff:203.0.113.3', '::ffff:203.0.113.1'];
    const statuses = [];
    for (const address of addresses) statuses.push((await ask(address)).status);
    expect(statuses).toEqual([200, 200, 200, 429]);
  });
}
