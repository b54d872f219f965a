import { Redis } from 'ioredis';
import { type Listening, listen } from './listen.ts';

/** In front of Upstash's own scripts: a flag of its servers, which Redis rejects. */
const UPSTASH_FLAG = /^#!lua flags=allow-key-locking\n/;

/** A front of a Redis server that speaks HTTP as Upstash does. */
export interface RedisRest extends Listening {
  readonly token: string;
  /** The commands that came, in lower case, in their order. */
  readonly commands: string[];
}

/** Sends commands to the Redis server on this port: `POST /` takes one as a JSON array, `POST /pipeline` a list. */
export async function startRedisRest(redisPort: number): Promise<RedisRest> {
  const token = 'token-of-the-test';
  const commands: string[] = [];
  const redis = new Redis(redisPort);
  const run = async ([name = '', ...args]: string[], inBase64: boolean): Promise<{ result: unknown } | Failure> => {
    commands.push(name.toLowerCase());
    const failed = ({ message }: Error): Failure => ({ error: message });
    return redis
      .callBuffer(name, ...args.map((word) => String(word).replace(UPSTASH_FLAG, '')))
      .then((reply) => ({ result: encode(reply, inBase64 ? 'base64' : 'utf8') }), failed);
  };
  const front = await listen(async (request, response) => {
    const { authorization, 'upstash-encoding': encoding } = request.headers;
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    const answer = async (): Promise<[status: number, body: object]> => {
      if (authorization !== `Bearer ${token}`) return [401, { error: 'Unauthorized' }];
      const words = JSON.parse(text);
      if (request.url === '/pipeline') {
        const replies = [];
        for (const each of words) replies.push(await run(each, encoding === 'base64'));
        return [200, replies];
      }
      const reply = await run(words, encoding === 'base64');
      return ['error' in reply ? 400 : 200, reply];
    };
    const [status, body] = await answer();
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  return {
    ...front,
    token,
    commands,
    async close() {
      await front.close();
      redis.disconnect();
    },
  };
}

interface Failure {
  readonly error: string;
}

/** The word OK alone travels as it is. */
function encode(reply: unknown, encoding: 'base64' | 'utf8'): unknown {
  if (Array.isArray(reply)) return reply.map((each) => encode(each, encoding));
  if (!Buffer.isBuffer(reply)) return reply;
  return reply.toString() === 'OK' ? 'OK' : reply.toString(encoding);
}
