import { Resolver } from 'node:dns/promises';

/** For each name server, doubled at the second try. */
const TRY_MS = 3_000;
const TRIES = 2;

/** Reads the DNS records of a host. */
export type HostResolver = Pick<Resolver, 'resolveCname' | 'resolveTxt'>;

/** Asks the system's name servers, without the thread pool that other look-ups share. */
export const systemResolver = (): HostResolver => new Resolver({ timeout: TRY_MS, tries: TRIES });
