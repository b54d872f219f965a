import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { UserError } from '../domain/user-error.ts';

/** Where to listen, and the variables that say so. */
export interface Place {
  readonly host: string;
  readonly port: number;
  readonly names: { readonly host: 'HOST' | 'ADMIN_HOST'; readonly port: 'PORT' | 'ADMIN_PORT' };
}

/**
 * Waits until a server listens.
 * @returns its origin
 * @throws UserError
 */
export async function listen(server: Server, begin: (place: Place) => Promise<unknown>, place: Place): Promise<string> {
  try {
    await begin(place);
  } catch (cause) {
    throw new UserError(reasonOf(cause as NodeJS.ErrnoException, place), 1, { cause });
  }
  const { address, port } = server.address() as AddressInfo;
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
}

function reasonOf({ code, message }: NodeJS.ErrnoException, { host, port, names }: Place): string {
  const where = `${host}:${port}`;
  if (code === 'EADDRINUSE')
    return `${names.port}: another process listens on ${where}. Stop it, or set another ${names.port}, for example ${names.port}=${port + 1}.`;
  if (code === 'EACCES') return `${names.port}: this user may not listen on ${where}. Set a ${names.port} from 1024.`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return `${names.host}: ${host} is not an address of this machine.`;
  return `${names.host}, ${names.port}: cannot listen on ${where}: ${message}`;
}
