import type { PeerReader } from '../../address/peer.ts';
import type { NodeRequest } from './http.ts';

/**
 * What Node knows of the client of a request, for limits by address.
 * @param unwrap returns Node's request
 */
export function nodePeer<Context>(
  unwrap: (context: Context) => Pick<NodeRequest, 'socket' | 'headers'>,
): PeerReader<Context> {
  return {
    // Requests that a platform or a test has made up may have no socket.
    address: (context) => unwrap(context).socket?.remoteAddress,
    fields: (context) => unwrap(context).headers,
  };
}
