import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import type { OutgoingHttpHeaders } from 'node:http';
import { createServer, type Server as TcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterFile } from 'headgate-testbed/after-file';
import { type Ask, type Reply, send } from 'headgate-testbed/raw-http';
import { listenDefaults, onListening } from 'headgate-testbed/tls-listener';
import { checkConfig } from '../../src/config/config.ts';
import { type Gateway, startGateway } from '../../src/gateway.ts';
import { createLog, type Log } from '../../src/operations/log.ts';
import { TOKEN } from './gateway.ts';

/** A log that writes to a file. */
export interface LogFile {
  readonly log: Log;
  /** Every complete line so far. Lines are written a little later than they are logged. */
  lines(): Record<string, unknown>[];
}

/** A gateway in the process of the test, so that its coverage is measured. */
export interface InProcess {
  readonly gateway: Gateway;
  readonly port: number;
  readonly adminPort: number;
  /** Of the listener that decides for others; 0 without it. */
  readonly decisionsPort: number;
  /** Of Envoy's rate limit service; 0 without it. */
  readonly rateLimitPort: number;
  lines(): Record<string, unknown>[];
  /** Sends a request with the standard key; `'x-api-key': undefined` leaves it out. */
  ask(method: string, path: string, headers?: OutgoingHttpHeaders, more?: Partial<Ask>): Promise<Reply>;
  metrics(): Promise<string>;
  /** Stops the gateway once. Returns how many requests were cut off. */
  stop(): Promise<number>;
}

export function openLog(): LogFile {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-in-process-'));
  const file = join(folder, 'log.jsonl');
  const fd = openSync(file, 'a');
  const log = createLog(fd);
  afterFile(() => {
    closeSync(fd);
    rmSync(folder, { recursive: true, force: true });
  });
  const lines = () =>
    readFileSync(file, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { log, lines };
}

/**
 * Starts a gateway on free ports, unless the config names others. `admin: undefined` starts it without an admin
 * listener.
 */
export async function startInProcess(config: Record<string, unknown>): Promise<InProcess> {
  const anyPort = { host: '127.0.0.1', port: 0 };
  const { log, lines } = openLog();
  const listen = { ...anyPort, ...listenDefaults() };
  const gateway = await startGateway(checkConfig({ listen, admin: anyPort, ...config }, 'test'), log);
  const { port } = gateway.address;
  onListening(port);
  const adminPort = gateway.adminAddress?.port ?? 0;
  let stopped: Promise<number> | undefined;
  const stop = () => {
    stopped ??= gateway.stop();
    return stopped;
  };
  afterFile(stop);
  return {
    gateway,
    port,
    adminPort,
    rateLimitPort: gateway.rateLimitServiceAddress?.port ?? 0,
    decisionsPort: gateway.decisionsAddress?.port ?? 0,
    lines,
    ask: (method, path, headers = {}, more = {}) => {
      const all = Object.entries({ 'x-api-key': TOKEN, ...headers }).filter(([, value]) => value !== undefined);
      return send(port, { method, path, headers: Object.fromEntries(all), ...more });
    },
    metrics: async () => (await send(adminPort, { path: '/metrics' })).text,
    stop,
  };
}

/** A server that accepts connections and sends nothing. With `https://`, the TLS handshake never ends. */
export async function startMute(): Promise<{ readonly port: number; connections(): number; close(): Promise<void> }> {
  let count = 0;
  const sockets = new Set<{ destroy(): void }>();
  const server: TcpServer = createServer((socket) => {
    count += 1;
    sockets.add(socket);
    socket.on('error', () => {}).resume();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () => {
    for (const socket of sockets) socket.destroy();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  };
  afterFile(close);
  return { port: (server.address() as { port: number }).port, connections: () => count, close };
}
