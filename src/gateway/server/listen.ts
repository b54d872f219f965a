import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An address of the config. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** The process cannot listen on an address; exit code 1. */
export class ListenError extends Error {
  constructor({ host, port }: Address, flag: string, cause: NodeJS.ErrnoException) {
    const why =
      cause.code === 'EADDRINUSE'
        ? `port ${port} of ${host} is in use (EADDRINUSE)`
        : cause.code === 'EACCES'
          ? `port ${port} of ${host} needs more rights (EACCES)`
          : `cannot listen on ${host}, port ${port} (${cause.code ?? cause.message})`;
    super(`${why}: choose another with ${flag}`, { cause });
    this.name = 'ListenError';
  }
}

/**
 * Listens. Resolves to the real address: a port of 0 has become the port that the system chose.
 * @param flag how to choose another address, for the error message
 * @throws ListenError
 */
export function listen(server: Server, address: Address, flag: string): Promise<Address> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException): void => reject(new ListenError(address, flag, error));
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
