import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { CustomProxy } from '../domain/proxy.ts';
import { EgressError, type Net, type NetTarget } from './net.ts';

/** The connections to the outside: providers, proxies, webhooks and look-ups of mail servers. */
export class Egress {
  /** The way out through a proxy, or the direct one. */
  through(_proxy: CustomProxy | undefined): Net {
    return { connect, fetch: (url, init) => fetch(url, { ...init, redirect: 'manual' }) };
  }
}

function connect({ host, port, tls }: NetTarget, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = tls ? connectTls({ host, port, servername: host }) : connectTcp({ host, port });
    const abort = (): void => void socket.destroy(new EgressError('timeout', 'The connection was not made in time.'));
    signal.addEventListener('abort', abort, { once: true });
    socket.once(tls ? 'secureConnect' : 'connect', () => {
      signal.removeEventListener('abort', abort);
      socket.removeAllListeners('error');
      resolve(socket);
    });
    socket.once('error', (cause) => {
      signal.removeEventListener('abort', abort);
      reject(
        cause instanceof EgressError ? cause : new EgressError('refused', 'The connection was refused.', { cause }),
      );
    });
  });
}
