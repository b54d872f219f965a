import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { EgressError, type Net } from '../../src/security/net.ts';

/** Connects to every address, without a policy: for tests of what happens behind the connection. */
export const directNet: Net = {
  connect: ({ host, port, tls }, signal) =>
    new Promise<Socket>((resolve, reject) => {
      const socket = tls ? connectTls({ host, port, servername: 'localhost' }) : connectTcp({ host, port });
      signal.addEventListener('abort', () => socket.destroy(new EgressError('timeout', 'No connection in time.')), {
        once: true,
      });
      socket.once(tls ? 'secureConnect' : 'connect', () => {
        socket.removeAllListeners('error');
        resolve(socket);
      });
      socket.once('error', (cause) =>
        reject(
          cause instanceof EgressError ? cause : new EgressError(tls ? 'tls' : 'refused', 'No connection.', { cause }),
        ),
      );
    }),
  fetch: () => Promise.reject(new Error('There is no HTTP here.')),
};
