import type { IncomingMessage } from 'node:http';
import { fieldValues } from 'headgate/internal';
import { isLoopback } from '../config/loopback.ts';
import { type Refusal, refuse } from '../exchange/refusal.ts';

/** The host of the field `Host`, without its port. */
const HOST = /^(\[[\da-f:.]+\]|[^:[\]/@\s]+)(?::\d{1,5})?$/i;

/**
 * Refuses requests that a page of another origin makes a browser send. By DNS rebinding a page reaches any address
 * under its own name, so the name must be known. No page may send a request that changes something.
 * @param hosts further names of the listener
 */
export function refuseOrigin(request: IncomingMessage, hosts: readonly string[]): Refusal | undefined {
  const { method, rawHeaders, headers, socket } = request;
  const [given = '', another] = fieldValues(rawHeaders, 'host');
  const host = another === undefined ? HOST.exec(given)?.[1]?.toLowerCase() : undefined;
  if (host === undefined) return refuse(400, 'errors/malformed_request', 'The request must have the header Host once.');
  const address = host.replace(/^\[(.*)\]$/, '$1');
  const isOwn = isLoopback(address) || address === socket.localAddress?.replace(/^::ffff:/, '');
  if (!isOwn && !hosts.some((name) => name.toLowerCase() === host)) {
    const detail = `The Admin API is not known by the name ${JSON.stringify(host.slice(0, 100))}: add it to admin.hosts.`;
    return refuse(403, 'errors/resource_access_restricted', detail);
  }
  const site = headers['sec-fetch-site'];
  if (method !== 'GET' && (site === 'cross-site' || site === 'same-site'))
    return refuse(403, 'errors/resource_access_restricted', 'Pages of other origins may not change anything.');
  return undefined;
}
