import { isPostgresUrl, type PostgresUrl, parsePostgresUrl, type SslMode } from './postgres-url.ts';
import type { StoreSetting } from './schema.ts';

/** Where counters and claims are stored: the config's `store`, taken apart. */
export type StoreUrl =
  | { readonly kind: 'memory' }
  | ({ readonly kind: 'redis'; readonly node: Node; readonly db: number; readonly tls: boolean } & Credentials)
  | ({ readonly kind: 'redis-cluster'; readonly nodes: readonly Node[] } & Credentials)
  | PostgresStore;

/** A store URL that names a Redis server. */
export type RedisUrl = Extract<StoreUrl, { kind: 'redis' | 'redis-cluster' }>;

/** A store in PostgreSQL. */
export interface PostgresStore extends Omit<PostgresUrl, 'sslMode'> {
  readonly kind: 'postgres';
  readonly sslMode: SslMode;
  /** Certificate authorities of the server, in PEM. Undefined: those that Node trusts. */
  readonly ca: string | undefined;
  readonly schema: string;
  readonly maxConnections: number;
  /** Whether the schema is created or updated at start. */
  readonly migrate: boolean;
}

/** The settings of a store in PostgreSQL that has only a URL. */
const POSTGRES_DEFAULTS = {
  password: undefined,
  schema: 'headgate',
  maxConnections: 10,
  ca: undefined,
  migrate: false,
};

interface Node {
  readonly host: string;
  readonly port: number;
}

interface Credentials {
  readonly username: string | undefined;
  readonly password: string | undefined;
}

const DEFAULT_PORT = 6_379;

/** Reads the `store` of a config. Returns undefined if it has a flaw. */
export function parseStore(store: StoreSetting): StoreUrl | undefined {
  if (typeof store === 'string' && !isPostgresUrl(store)) return parseStoreUrl(store);
  const settings = typeof store === 'string' ? { ...POSTGRES_DEFAULTS, url: store } : store.postgres;
  const { url, password, ca, ...rest } = settings;
  const parts = parsePostgresUrl(url);
  if ('reason' in parts) return undefined;
  const sslMode = parts.sslMode ?? (ca === undefined ? 'disable' : 'verify-full');
  return { ...rest, ...parts, kind: 'postgres', sslMode, ca, password: password ?? parts.password };
}

/**
 * Reads `memory`, `redis://[user:password@]host:port/db`, `rediss://…` or
 * `redis-cluster://[user:password@]host:port,host:port`. Returns undefined for anything else.
 */
export function parseStoreUrl(text: string): Exclude<StoreUrl, PostgresStore> | undefined {
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
