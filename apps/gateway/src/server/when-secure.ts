import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** Calls `onSecure` with both sockets of a connection when its TLS handshake ends. Never for a server without TLS. */
export function whenSecure(server: Server, onSecure: (tcpSocket: Socket, tlsSocket: Socket) => void): void {
  const handshakes = new Map<string, Socket>();
  if (server.listenerCount('secureConnection') === 0) return;
  server.on('connection', (socket) => {
    const name = nameOf(socket);
    handshakes.set(name, socket);
    socket.once('close', () => {
      if (handshakes.get(name) === socket) handshakes.delete(name);
    });
  });
  server.on('secureConnection', (tlsSocket: Socket) => {
    const tcpSocket = handshakes.get(nameOf(tlsSocket));
    if (tcpSocket !== undefined) onSecure(tcpSocket, tlsSocket);
  });
}

/**
 * Node shows the two sockets in two events. The addresses of both ends, which are unique to a connection, join them.
 */
function nameOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}
