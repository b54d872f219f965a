import { OptionError } from '../../base/errors.ts';
import { listenTo } from '../shared/ready.ts';
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

/** A server with keys: the only one, or a master of a cluster. */
export interface RedisNode {
  /** Host and port of a master; '' for the only server. */
  readonly address: string;
  /** Sends a command without keys. */
  ask(command: string, argument: string): Promise<unknown>;
  /** Sends one SCAN, from a position that SCAN returned. The names are without the client's own prefix. */
  scan(position: string, pattern: string, count: number): Promise<ScanPage>;
}

/** The reply of one SCAN. */
export interface ScanPage {
  /** `0` at the end. */
  readonly position: string;
  readonly keys: readonly string[];
}

/** The commands that the stores use, in one form for every client. */
export interface Commands {
  /** Whether a script can touch keys of one hash slot only. */
  readonly isCluster: boolean;
  /** Whether each command is an HTTP request. Scripts then reply in hexadecimal digits, and each check is sent alone. */
  readonly isOverHttp?: boolean;
  /** Whether the client would send a command now, and not queue it. */
  isReady(): boolean;
  /** Listens to the errors of the client. Returns what stops it. */
  onClientError(listener: (error: unknown) => void): () => void;
  /** Strings in the reply are bytes. */
  evalsha(sha1: string, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  /** Strings in the reply are bytes. */
  eval(source: string, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  unlink(key: string): Promise<unknown>;
  /** The servers with keys, as far as the client knows them. */
  nodes(): Promise<readonly RedisNode[]>;
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

/** The error text about a client of an old version; undefined for any other value. */
function oldNodeRedis(client: unknown): string | undefined {
  if (hasMethod(client, 'evalSha')) return 'one of node-redis 4';
  if (hasMethod(client, 'internal_send_command')) return 'one of node-redis 3 or older';
  return undefined;
}

/** Methods of ioredis beyond {@link IoredisClient}. */
interface OtherMethods {
  /** Strings in the reply are bytes, also of the next one. */
  evalshaBuffer: IoredisClient['evalsha'];
  evalBuffer: IoredisClient['eval'];
  call(command: string, argument: string): Promise<unknown>;
}

/** Methods of a node-redis client of one server. */
interface NodeRedisNode extends Required<Pick<NodeRedisClient, 'scan'>> {
  sendCommand(words: readonly string[]): Promise<unknown>;
}

function fromIoredis(client: IoredisClient): Commands {
  const inBytes = client as unknown as OtherMethods;
  const keyPrefix = client.options?.keyPrefix ?? '';
  return {
    isCluster: hasMethod(client, 'nodes'),
    isReady: () => client.status === undefined || client.status === 'ready' || client.status === 'wait',
    onClientError: (listener) => listenTo(client, listener),
    evalsha: (sha1, keys, args) => inBytes.evalshaBuffer(sha1, keys.length, ...keys, ...args),
    eval: (source, keys, args) => inBytes.evalBuffer(source, keys.length, ...keys, ...args),
    unlink: (key) => client.unlink(key),
    async nodes() {
      const isCluster = hasMethod(client, 'nodes');
      const nodes = isCluster ? (client as unknown as IoredisCluster).nodes('master') : [client];
      return nodes.map((node) => ({
        address: isCluster ? addressOf(node.options) : '',
        ask: (command, argument) => (node as unknown as OtherMethods).call(command, argument),
        async scan(from, pattern, count) {
          const [position, keys] = await node.scan(from, 'MATCH', glob(keyPrefix) + pattern, 'COUNT', String(count));
          return { position, keys: keys.map((key) => key.slice(keyPrefix.length)) };
        },
      }));
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
    async nodes() {
      if (!hasMethod(client, 'nodeClient')) return [nodeOf('', client)];
      const cluster = client as unknown as NodeRedisCluster;
      return Promise.all(
        cluster.masters.map(async (master) => nodeOf(addressOf(master), await cluster.nodeClient(master))),
      );
    },
  };
}

function nodeOf(address: string, client: NodeRedisClient): RedisNode {
  return {
    address,
    ask: (command, argument) => inText(client).sendCommand([command, argument]),
    async scan(from, pattern, count) {
      const { cursor, keys } = await inText(client).scan(from, { MATCH: pattern, COUNT: count });
      return { position: String(cursor), keys };
    },
  };
}

/** Lists the matching keys of every server, page by page. */
export async function* scanAll(commands: Commands, pattern: string): AsyncGenerator<readonly string[], void> {
  for (const node of await commands.nodes()) {
    let page: ScanPage = { position: '0', keys: [] };
    do {
      page = await node.scan(page.position, pattern, KEYS_PER_PAGE);
      yield page.keys;
    } while (page.position !== '0');
  }
}

function addressOf(where: unknown): string {
  const { host, port } = (where ?? {}) as { readonly host?: unknown; readonly port?: unknown };
  return `${host}:${port}`;
}

/** The client with its usual reply types: its own mapping can turn keys into bytes. */
function inText(client: NodeRedisClient): NodeRedisNode {
  return client.withTypeMapping({}) as unknown as NodeRedisNode;
}

function hasMethod(value: unknown, name: string): boolean {
  return typeof (value as Record<string, unknown> | undefined)?.[name] === 'function';
}
