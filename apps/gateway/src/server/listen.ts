import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An address of the config. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** How to choose another host and another port, for error messages: the flag, or the place in the config. */
export type AddressPlaces = Readonly<Record<'host' | 'port', string>>;

export const LISTEN_PLACES: AddressPlaces = { host: '--host', port: '--port' };
export const ADMIN_PLACES: AddressPlaces = { host: 'admin.host in the config', port: '--admin-port' };

export const DECISIONS_PLACES: AddressPlaces = {
  host: 'decisions.host in the config',
  port: 'decisions.port in the config',
};

export const RATE_LIMIT_SERVICE_PLACES: AddressPlaces = {
  host: 'rateLimitService.host in the config',
  port: 'rateLimitService.port in the config',
};

/** The process cannot listen on an address; exit code 1. */
export class ListenError extends Error {
  constructor({ host, port }: Address, places: AddressPlaces, cause: NodeJS.ErrnoException) {
    const code = cause.code ?? cause.message;
    super(reasonFor(code, `port ${port} of ${host}`, host, places), { cause });
    this.name = 'ListenError';
  }
}

function reasonFor(code: string, port: string, host: string, places: AddressPlaces): string {
  switch (code) {
    case 'EADDRINUSE':
      return `${port} is in use (${code}): choose another with ${places.port}`;
    case 'EACCES':
      return `${port} needs more rights (${code}): choose another with ${places.port}`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `the host ${host} is unknown (${code}): choose another with ${places.host}`;
    case 'EADDRNOTAVAIL':
      return `the host ${host} is not an address of this machine (${code}): choose another with ${places.host}`;
    default:
      return `cannot listen on ${port} (${code}): choose another with ${places.host} or ${places.port}`;
  }
}

/**
 * Listens. Resolves to the real address: the system's choice replaces a port of 0.
 * @throws ListenError
 */
export function listen(server: Server, address: Address, places: AddressPlaces): Promise<Address> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException): void => reject(new ListenError(address, places, error));
    server.once('error', fail);
    server.listen({ host: address.host, port: address.port }, () => {
      server.off('error', fail);
      resolve({ host: address.host, port: (server.address() as AddressInfo).port });
    });
  });
}

/** `http://127.0.0.1:8080`; an IPv6 address gets brackets. */
export function urlOf({ host, port }: Address, scheme: 'http' | 'https' = 'http'): string {
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
