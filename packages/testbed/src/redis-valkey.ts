import { isOnPath } from './find-program.ts';
import { type RedisServer, startServer } from './redis-server.ts';

/** The Valkey server of this machine: VALKEY_SERVER_BIN, which must exist if it is set, or the one on the PATH. */
export function findValkey(): string | undefined {
  return process.env.VALKEY_SERVER_BIN ?? (isOnPath('valkey-server') ? 'valkey-server' : undefined);
}

export function startValkey(binary: string): Promise<RedisServer> {
  return startServer(binary, ({ port, folder }) => [
    ...['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder],
  ]);
}
