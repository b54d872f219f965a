import { isIP } from 'node:net';
import { type AddressClass, canonicalHost, classOfAddress } from './addresses.ts';
import type { Lookup } from './lookup.ts';
import { EgressError } from './net.ts';

export const EGRESS_POLICIES = ['public', 'link-local', 'off'] as const;

/**
 * The permitted targets of connections. `public`: addresses of the internet only. `link-local`: also private addresses
 * and the addresses of this machine, but no link-local addresses and no metadata services. `off`: anywhere.
 */
export type PolicyName = (typeof EGRESS_POLICIES)[number];

/** The purpose of a connection. */
export type Purpose = 'mail' | 'web' | 'proxy';

/** A host that may be connected to. */
export interface JudgedHost {
  /** For certificates: a name, or an address if the host is given by its address. */
  readonly name: string;
  /** At least one. Every one was judged. */
  readonly addresses: readonly string[];
}

const ALLOWED: Readonly<Record<PolicyName, readonly AddressClass[]>> = {
  public: ['public'],
  'link-local': ['public', 'private'],
  off: ['public', 'private', 'never'],
};

const MAIL_PORTS: readonly number[] = [25, 143, 465, 587, 993, 2525];
/** Proxies and servers under development listen there. The services that trust their network listen below, mostly. */
const isWebOrHigh = (port: number): boolean => port === 80 || port === 443 || port >= 1_024;

/** Decides where connections may lead to. */
export class EgressPolicy {
  constructor(
    private readonly name: PolicyName,
    private readonly morePorts: readonly number[],
    private readonly lookup: Lookup,
  ) {}

  /**
   * Looks a host up and judges all of its addresses. If one is forbidden, the host is.
   * @throws EgressError
   */
  async judge(hostText: string, port: number, purpose: Purpose): Promise<JudgedHost> {
    const name = canonicalHost(hostText);
    if (name === undefined) throw new EgressError('unresolved', 'The name of the host is not valid.');
    if (!this.#isPortAllowed(port, purpose))
      throw new EgressError('forbidden', 'The service does not connect to this port (EGRESS_PORTS).');
    const addresses = isIP(name) === 0 ? await this.#resolve(name) : [name];
    if (addresses.every((address) => ALLOWED[this.name].includes(classOfAddress(address)))) return { name, addresses };
    throw new EgressError('forbidden', 'The service does not connect to addresses of this kind (EGRESS_POLICY).');
  }

  async #resolve(name: string): Promise<readonly string[]> {
    const addresses = await this.lookup(name).catch((): readonly string[] => []);
    if (addresses.length === 0) throw new EgressError('unresolved', 'The name of the host has no address.');
    return addresses;
  }

  #isPortAllowed(port: number, purpose: Purpose): boolean {
    if (!Number.isInteger(port) || port < 1 || port > 65_535) return false;
    if (this.name === 'off' || this.morePorts.includes(port)) return true;
    if (purpose === 'mail') return MAIL_PORTS.includes(port);
    return purpose === 'proxy' || this.name === 'link-local' ? isWebOrHigh(port) : port === 443;
  }
}
