import type { LimitStore } from './ports.ts';

/** Which counters a store on a server has, in its `identity`: two processes cannot compare objects. */
export interface CountersName {
  /** The same in every process that uses the same prefix or schema: `redis headgate`. */
  readonly counters?: string;
  /** The server, as far as the client says it, and the counters there. The same for two clients of one server. */
  readonly place?: string | undefined;
}

export function countersOf({ identity }: LimitStore): CountersName {
  return identity ?? {};
}

/**
 * Names the counters of a client.
 * @param counters the kind of server, and the prefix or schema
 */
export function nameCounters(client: object, counters: string): CountersName {
  const server = serverOf(client);
  return { counters, place: server && `${counters} ${server}` };
}

/** The server of a client, by the options of the usual packages. It contains no password. */
function serverOf(client: object): string | undefined {
  const options = Object(Reflect.get(client, 'options'));
  const { connectionString: url = options.url, socket = options, name, keyPrefix } = options;
  const { host, port, path } = Object(socket);
  const { host: inUrl, pathname } = typeof url === 'string' && URL.canParse(url) ? new URL(url) : {};
  if ((host ?? path ?? inUrl) === undefined) return undefined;
  return JSON.stringify([host ?? inUrl, port, path, options.database ?? options.db ?? pathname, name, keyPrefix]);
}
