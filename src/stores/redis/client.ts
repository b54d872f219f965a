import type { EventEmitter } from 'node:events';
import { OptionError } from '../../core/errors.ts';
import { glob } from './keys.ts';

/** The methods of ioredis 5 or 6, and of its Cluster, that the stores use. The package itself is not imported. */
export interface IoredisClient {
  evalsha(sha1: string, numberOfKeys: number, ...keysAndArguments: string[]): Promise<unknown>;
  eval(source: string, numberOfKeys: number, ...keysAndArguments: string[]): Promise<unknown>;
  scan(cursor: string, ...options: ['MATCH', string, 'COUNT', string]): Promise<[cursor: string, keys: string[]]>;
  unlink(key: string): Promise<unknown>;
  /** ioredis puts `keyPrefix` in front of every key, except for the pattern and the results of SCAN. */
  readonly options?: { readonly keyPrefix?: string | undefined };
  /** `ready`; or `wait`, if the client connects with its first command. */
  readonly status?: string;
}

/** The method of ioredis' Cluster that lists the nodes. */
export interface IoredisCluster {
  nodes(role: 'master'): IoredisClient[];
}

interface NodeRedisArguments {
  readonly keys: string[];
  readonly arguments: string[];
}

/** The methods of node-redis 5 or 6 that the stores use. */
export interface NodeRedisClient {
  /** Returns the same client with another mapping of reply types. */
  withTypeMapping(mapping: Record<number, unknown>): Pick<NodeRedisClient, 'evalSha' | 'eval' | 'scan'>;
  evalSha(sha1: string, options: NodeRedisArguments): Promise<unknown>;
  eval(source: string, options: NodeRedisArguments): Promise<unknown>;
  unlink(key: string): Promise<unknown>;
  readonly isReady?: boolean;
  scan?(
    cursor: string,
    options: { MATCH: string; COUNT: number },
  ): Promise<{ cursor: string | number; keys: string[] }>;
}

/** The nodes of a node-redis cluster. */
export interface NodeRedisCluster {
  readonly masters: readonly object[];
  nodeClient(node: object): Promise<NodeRedisClient> | NodeRedisClient;
}

/** A connected client. The stores never connect, close or configure it. */
export type RedisClient = IoredisClient | NodeRedisClient;

/** The commands that the stores use, in one form for every client. */
export interface Commands {
  /** Whether a script can touch keys of one hash slot only. */
  readonly isCluster: boolean;
  /** Whether the client would send a command now, and not queue it. */
  isReady(): boolean;
  /** Listens to the errors of the client. Returns what stops it. */
  onClientError(listener: (error: unknown) => void): () => void;
  /** Strings in the reply are bytes. */
  evalsha(sha1: string, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  /** Strings in the reply are bytes. */
  eval(source: string, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  unlink(key: string): Promise<unknown>;
  /** Lists the matching keys of every master, page by page. */
  scan(pattern: string): AsyncIterable<readonly string[]>;
}

const SUPPORTED = 'ioredis 5 or 6, or of node-redis 5 or 6';
const KEYS_PER_PAGE = 1_000;
/** node-redis identifies the types of the Redis protocol by their first byte. This is `$`, the type of strings. */
const BLOB_STRING = 0x24;

/**
 * Detects the client by its methods, because the name of its class changes in a minified build and in a subclass.
 * @param option the name of the client in the error
 * @throws OptionError
 */
export function commandsOf(option: string, client: RedisClient): Commands {
  if (hasMethod(client, 'evalshaBuffer')) return fromIoredis(client as IoredisClient);
  // Before version 5, node-redis returns bytes in another way, and is not tested here.
  if (hasMethod(client, 'evalSha') && hasMethod(client, 'withTypeMapping')) {
    return fromNodeRedis(client as NodeRedisClient);
  }
  throw new OptionError(option, client, `must be a client of ${SUPPORTED}`, oldNodeRedis(client));
}

/** What an error says of a client of an old version; undefined for any other value. */
function oldNodeRedis(client: unknown): string | undefined {
  if (hasMethod(client, 'evalSha')) return 'one of node-redis 4';
  if (hasMethod(client, 'internal_send_command')) return 'one of node-redis 3 or older';
  return undefined;
}

/** Methods of ioredis that its types do not have. Strings in their replies are bytes. */
interface BufferMethods {
  evalshaBuffer: IoredisClient['evalsha'];
  evalBuffer: IoredisClient['eval'];
}

function fromIoredis(client: IoredisClient): Commands {
  const inBytes = client as unknown as BufferMethods;
  const keyPrefix = client.options?.keyPrefix ?? '';
  return {
    isCluster: hasMethod(client, 'nodes'),
    isReady: () => client.status === undefined || client.status === 'ready' || client.status === 'wait',
    onClientError: (listener) => listenTo(client, listener),
    evalsha: (sha1, keys, args) => inBytes.evalshaBuffer(sha1, keys.length, ...keys, ...args),
    eval: (source, keys, args) => inBytes.evalBuffer(source, keys.length, ...keys, ...args),
    unlink: (key) => client.unlink(key),
    async *scan(pattern) {
      const nodes = hasMethod(client, 'nodes') ? (client as unknown as IoredisCluster).nodes('master') : [client];
      for (const node of nodes) {
        let cursor = '0';
        do {
          const [next, keys] = await node.scan(
            cursor,
            'MATCH',
            glob(keyPrefix) + pattern,
            'COUNT',
            String(KEYS_PER_PAGE),
          );
          cursor = next;
          yield keys.map((key) => key.slice(keyPrefix.length));
        } while (cursor !== '0');
      }
    },
  };
}

function fromNodeRedis(client: NodeRedisClient): Commands {
  const inBytes = client.withTypeMapping({ [BLOB_STRING]: Buffer });
  return {
    isCluster: hasMethod(client, 'nodeClient'),
    isReady: () => client.isReady !== false,
    onClientError: (listener) => listenTo(client, listener),
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
          const page = await inText(node).scan(cursor, { MATCH: pattern, COUNT: KEYS_PER_PAGE });
          cursor = String(page.cursor);
          yield page.keys;
        } while (cursor !== '0');
      }
    },
  };
}

/** Both clients are event emitters. */
function listenTo(client: object, listener: (error: unknown) => void): () => void {
  const { on, off } = client as Partial<EventEmitter>;
  on?.call(client, 'error', listener);
  return () => void off?.call(client, 'error', listener);
}

/** The client with its usual reply types: its own mapping can turn keys into bytes. */
function inText(client: NodeRedisClient): Required<Pick<NodeRedisClient, 'scan'>> {
  return client.withTypeMapping({}) as Required<Pick<NodeRedisClient, 'scan'>>;
}

function hasMethod(value: unknown, name: string): boolean {
  return typeof (value as Record<string, unknown> | undefined)?.[name] === 'function';
}
