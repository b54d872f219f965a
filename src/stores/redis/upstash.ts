import type { Commands } from './client.ts';

/** The methods of a client of `@upstash/redis` that the store uses. It sends each command over HTTP. */
export interface UpstashClient {
  /** Runs a script that the server knows. */
  evalsha(sha1: string, keys: string[], args: string[]): Promise<unknown>;
  /** Runs a script. */
  eval(source: string, keys: string[], args: string[]): Promise<unknown>;
  /** No other client has this method by this name, so it shows which client it is. */
  evalshaRo(sha1: string, keys: string[], args: string[]): Promise<unknown>;
  /** Deletes a key. */
  unlink(key: string): Promise<unknown>;
  /** Lists a page of keys. */
  scan(cursor: string, options: { match: string; count: number }): Promise<readonly [cursor: string, keys: string[]]>;
}

export function isUpstash(client: unknown): client is UpstashClient {
  return typeof (client as Partial<UpstashClient> | undefined)?.evalshaRo === 'function';
}

export function fromUpstash(client: UpstashClient): Commands {
  return {
    isCluster: false,
    isOverHttp: true,
    isReady: () => true,
    onClientError: () => () => {},
    evalsha: (sha1, keys, args) => runScript(() => client.evalsha(sha1, [...keys], [...args])),
    eval: (source, keys, args) => runScript(() => client.eval(source, [...keys], [...args])),
    unlink: (key) => client.unlink(key),
    nodes: async () => [
      {
        address: '',
        ask: () => Promise.reject(new Error('@upstash/redis cannot send this command')),
        async scan(from, match, count) {
          const [position, keys] = await client.scan(from, { match, count });
          return { position, keys };
        },
      },
    ],
  };
}

/**
 * A script whose bytes come as text. The client reads a reply as UTF-8, and as JSON if it can, so bytes would be lost.
 * The letter in front of the digits makes a reply no JSON.
 */
export const inHex = (source: string): string => `local function script()
${source}
end
local reply = script()
if type(reply) ~= 'string' then return reply end
return 'x' .. string.gsub(reply, '.', function(byte) return string.format('%02x', string.byte(byte)) end)`;

async function runScript(send: () => Promise<unknown>): Promise<unknown> {
  try {
    const reply = await send();
    return typeof reply === 'string' && /^x(?:[0-9a-f]{2})*$/.test(reply) ? bytesOf(reply) : reply;
  } catch (error) {
    throw withoutCommand(error);
  }
}

function bytesOf(hex: string): Uint8Array {
  const bytes = new Uint8Array((hex.length - 1) / 2);
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(hex.slice(2 * i + 1, 2 * i + 3), 16);
  return bytes;
}

/** The server's words alone: the client adds words in front of them, and the whole command, with names of accounts. */
function withoutCommand(error: unknown): unknown {
  const { name, message = '' } = (error ?? {}) as Partial<Error>;
  if (name !== 'UpstashError') return error;
  return new Error(message.replace(/^Command failed: /, '').replace(/, command was: [\s\S]*$/, ''));
}
