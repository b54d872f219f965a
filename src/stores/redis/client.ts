import { glob } from './keys.ts';

/** What the store asks of ioredis 5 or 6, and of its Cluster. Structural: no client is imported. */
export interface IoredisClient {
  evalsha(sha1: string, numberOfKeys: number, ...keysAndArguments: string[]): Promise<unknown>;
  eval(source: string, numberOfKeys: number, ...keysAndArguments: string[]): Promise<unknown>;
  scan(cursor: string, ...options: ['MATCH', string, 'COUNT', string]): Promise<[cursor: string, keys: string[]]>;
  unlink(key: string): Promise<unknown>;
  /** Of which `keyPrefix` stands in front of every key, but of none that SCAN matches and finds. */
  readonly options?: { readonly keyPrefix?: string | undefined };
  /** `ready`, or `wait` for one that connects with its first command. */
  readonly status?: string;
}

/** The nodes of ioredis' Cluster. */
export interface IoredisCluster {
  nodes(role: 'master'): IoredisClient[];
}

interface NodeRedisArguments {
  readonly keys: string[];
  readonly arguments: string[];
}

/** What the store asks of node-redis 5 or 6. */
export interface NodeRedisClient {
  /** The same client, giving strings as bytes. */
  withTypeMapping(mapping: Record<number, unknown>): Pick<NodeRedisClient, 'evalSha' | 'eval'>;
  evalSha(sha1: string, options: NodeRedisArguments): Promise<unknown>;
  eval(source: string, options: NodeRedisArguments): Promise<unknown>;
  unlink(key: string): Promise<unknown>;
  readonly isReady?: boolean;
  scan?(
    cursor: string,
    options: { MATCH: string; COUNT: number },
  ): Promise<{ cursor: string | number; keys: string[] }>;
}

/** The nodes of node-redis' cluster. */
export interface NodeRedisCluster {
  readonly masters: readonly object[];
  nodeClient(node: object): Promise<NodeRedisClient> | NodeRedisClient;
}

/** A connected client. The store never connects, closes or configures it. */
export type RedisClient = IoredisClient | NodeRedisClient;

/** The few commands of the store, in one shape for every client. */
export interface Commands {
  /** Whether a script can touch keys of one hash slot only. */
  readonly isCluster: boolean;
  /** Whether a command would be sent now rather than queued. */
  isReady(): boolean;
  /** Strings of the reply are bytes. */
  evalsha(sha1: string, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  /** Likewise. */
  eval(source: string, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  unlink(key: string): Promise<unknown>;
  /** Keys that match, of every master, a page at a time. */
  scan(pattern: string): AsyncIterable<readonly string[]>;
}

const PAGE = 1_000;
/** The type of strings in the Redis protocol, `$`: node-redis names its types by their first byte. */
const BLOB_STRING = 0x24;

/** Tells clients apart by a method that they have: a constructor's name is gone after minifying, and wrong for a subclass. */
export function commandsOf(client: RedisClient): Commands | undefined {
  if (hasMethod(client, 'evalshaBuffer')) return ofIoredis(client as IoredisClient);
  if (hasMethod(client, 'evalSha')) return ofNodeRedis(client as NodeRedisClient);
  return undefined;
}

/** ioredis has these beside every command, unknown to its types: strings of the reply are bytes. */
interface InBytes {
  evalshaBuffer: IoredisClient['evalsha'];
  evalBuffer: IoredisClient['eval'];
}

function ofIoredis(client: IoredisClient): Commands {
  const inBytes = client as unknown as InBytes;
  const keyPrefix = client.options?.keyPrefix ?? '';
  return {
    isCluster: hasMethod(client, 'nodes'),
    isReady: () => client.status === undefined || client.status === 'ready' || client.status === 'wait',
    evalsha: (sha1, keys, args) => inBytes.evalshaBuffer(sha1, keys.length, ...keys, ...args),
    eval: (source, keys, args) => inBytes.evalBuffer(source, keys.length, ...keys, ...args),
    unlink: (key) => client.unlink(key),
    async *scan(pattern) {
      const nodes = hasMethod(client, 'nodes') ? (client as unknown as IoredisCluster).nodes('master') : [client];
      for (const node of nodes) {
        let cursor = '0';
        do {
          const [next, keys] = await node.scan(cursor, 'MATCH', glob(keyPrefix) + pattern, 'COUNT', String(PAGE));
          cursor = next;
          yield keys.map((key) => key.slice(keyPrefix.length));
        } while (cursor !== '0');
      }
    },
  };
}

function ofNodeRedis(client: NodeRedisClient): Commands {
  const inBytes = client.withTypeMapping({ [BLOB_STRING]: Buffer });
  return {
    isCluster: hasMethod(client, 'nodeClient'),
    isReady: () => client.isReady !== false,
    evalsha: (sha1, keys, args) => inBytes.evalSha(sha1, { keys: [...keys], arguments: [...args] }),
    eval: (source, keys, args) => inBytes.eval(source, { keys: [...keys], arguments: [...args] }),
    unlink: (key) => client.unlink(key),
    async *scan(pattern) {
      const cluster = client as unknown as NodeRedisCluster;
      const nodes = hasMethod(client, 'nodeClient')
        ? await Promise.all(cluster.masters.map((node) => cluster.nodeClient(node)))
        : [client];
      for (const node of nodes) {
        let cursor = '0';
        do {
          const page = await (node as Required<NodeRedisClient>).scan(cursor, { MATCH: pattern, COUNT: PAGE });
          cursor = String(page.cursor);
          yield page.keys;
        } while (cursor !== '0');
      }
    },
  };
}

function hasMethod(value: unknown, name: string): boolean {
  return typeof (value as Record<string, unknown> | undefined)?.[name] === 'function';
}
