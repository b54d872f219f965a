/** Where counters and claims are stored: the config's `store`, taken apart. */
export type StoreUrl =
  | { readonly kind: 'memory' }
  | ({ readonly kind: 'redis'; readonly node: Node; readonly db: number; readonly tls: boolean } & Credentials)
  | ({ readonly kind: 'redis-cluster'; readonly nodes: readonly Node[] } & Credentials);

/** A store URL that names a server. */
export type RedisUrl = Exclude<StoreUrl, { kind: 'memory' }>;

interface Node {
  readonly host: string;
  readonly port: number;
}

interface Credentials {
  readonly username: string | undefined;
  readonly password: string | undefined;
}

const DEFAULT_PORT = 6_379;

/**
 * Reads `memory`, `redis://[user:password@]host:port/db`, `rediss://…` or
 * `redis-cluster://[user:password@]host:port,host:port`. Returns undefined for anything else.
 */
export function parseStoreUrl(text: string): StoreUrl | undefined {
  if (text === 'memory') return { kind: 'memory' };
  const match = /^(redis|rediss|redis-cluster):\/\/(?:([^@/]*)@)?([^@/]+)(?:\/(\d{1,5})?)?$/.exec(text);
  if (match === null) return undefined;
  const [, scheme, userinfo, hosts, db] = match as unknown as [string, string, string?, string?, string?];
  const nodes = (hosts as string).split(',').map(readNode);
  const credentials = readCredentials(userinfo);
  if (credentials === undefined || !nodes.every((node) => node !== undefined)) return undefined;
  if (scheme === 'redis-cluster') return db === undefined ? { kind: scheme, nodes, ...credentials } : undefined;
  const [node, ...others] = nodes;
  if (node === undefined || others.length > 0) return undefined;
  return { kind: 'redis', node, db: Number(db ?? 0), tls: scheme === 'rediss', ...credentials };
}

function readNode(text: string): Node | undefined {
  const match = /^(\[[0-9a-fA-F:.]+\]|[^:[\]]+)(?::(\d{1,5}))?$/.exec(text);
  const port = Number(match?.[2] ?? DEFAULT_PORT);
  if (match === null || port < 1 || port > 65_535) return undefined;
  return { host: (match[1] as string).replace(/^\[|\]$/g, ''), port };
}

function readCredentials(userinfo: string | undefined): Credentials | undefined {
  if (userinfo === undefined) return { username: undefined, password: undefined };
  const [username = '', ...rest] = userinfo.split(':');
  try {
    const password = rest.length === 0 ? undefined : decodeURIComponent(rest.join(':'));
    return { username: username === '' ? undefined : decodeURIComponent(username), password };
  } catch {
    return undefined;
  }
}
