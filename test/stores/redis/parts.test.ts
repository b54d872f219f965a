import fc from 'fast-check';
import { randomRuns } from 'headgate-testbed/nightly';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { isHeadgateError } from '../../../src/base/errors.ts';
import { parseLimit } from '../../../src/core/limit.ts';
import { createWindowSet } from '../../../src/core/window-set.ts';
import type { RedisClient } from '../../../src/stores/redis/client.ts';
import { createKeyNames } from '../../../src/stores/redis/keys.ts';
import { createRedisStore, type RedisStoreOptions } from '../../../src/stores/redis/limits.ts';
import { readConsumeReply } from '../../../src/stores/redis/reply.ts';
import { createArbitraries } from '../../../src/testing/arbitraries.ts';

const { port } = inject('redis');
const redis = new Redis({ port, host: '127.0.0.1' });
beforeAll(() => redis.ping());
afterAll(() => redis.disconnect());
const windowSet = createWindowSet([], parseLimit(['5/1h']));

/** A client that records its commands, and replies with the result of `answer`. */
function fakeClient(answer: (command: string) => unknown): { client: RedisClient; sent: string[] } {
  const sent: string[] = [];
  const command = (name: string): Promise<unknown> => {
    sent.push(name);
    return answer(name) as Promise<unknown>;
  };
  const client = {
    evalshaBuffer: () => command('EVALSHA'),
    evalBuffer: () => command('EVAL'),
    unlink: () => command('unlink'),
    scan: () => command('scan'),
  };
  return { client: client as unknown as RedisClient, sent };
}

const doubles = (...numbers: number[]): Buffer => Buffer.from(Float64Array.from(numbers).buffer);

describe('the script', () => {
  it('is sent as source if the server does not have it', async () => {
    const answer = (name: string): Promise<unknown> =>
      name === 'EVALSHA'
        ? Promise.reject(new Error('NOSCRIPT No matching script.'))
        : Promise.resolve(doubles(1, 0, 0));
    const { client, sent } = fakeClient(answer);
    expect(await createRedisStore(client).consume('a', 'r', windowSet, 1)).toMatchObject({
      accepted: true,
      degraded: false,
    });
    expect(sent).toEqual(['EVALSHA', 'EVAL']);
  });

  it.each(['ERR NOSCRIPT', 'Connection is closed.', 'LOADING', 'READONLY', 'OOM', 'BUSY', 'TRYAGAIN', 'CLUSTERDOWN'])(
    'is never sent again after another error: %s',
    async (message) => {
      const { client, sent } = fakeClient(() => Promise.reject(new Error(message)));
      expect((await createRedisStore(client).consume('a', 'r', windowSet, 1)).degraded).toBe(true);
      expect(sent).toEqual(['EVALSHA']);
    },
  );
});

describe('an invalid reply', () => {
  const replies = [
    null,
    true,
    'OK',
    7,
    [],
    ['1', doubles(0, 0)],
    [doubles(1, 0, 0)],
    '1',
    Buffer.from(''),
    Buffer.from('1'),
    doubles(1),
    doubles(1, 0),
    doubles(1, 0, 0, 0),
    doubles(1, 0, 0, 0, 0),
    doubles(1, 0, 1.5),
    doubles(1, Number.POSITIVE_INFINITY, 1),
    doubles(1, 0, Number.NaN),
    doubles(1, Number.NaN, Number.NaN),
    doubles(1, Number.NaN, 0.5),
    doubles(1.5, 0, 0),
    doubles(1e300, 0, 0),
    doubles(Number.NaN, 0, 0),
    // Of a blocked check: without the block, with one too many, and with a wrong one.
    doubles(1, Number.NaN, 0),
    Buffer.concat([doubles(1, 0, 0), Buffer.from('[[1,null,true]]')]),
    ...[
      '[',
      '{}',
      '[]',
      '[1]',
      '[[0,null,true]]',
      '[[1.5,null,true]]',
      '[[1,2,true]]',
      '[[1,null,true],[1,null,true]]',
    ].map((blocks) => Buffer.concat([doubles(1, Number.NaN, 0), Buffer.from(blocks)])),
  ];

  it.each(replies.map((reply) => [reply]))('is refused: %j', (reply) => {
    expect(() => readConsumeReply(reply, 1, 1)).toThrow(TypeError);
  });

  it.each(replies.map((reply) => [reply]))(
    'counts as a failure, is passed to onError, and with `refuse` the call throws: %j',
    async (reply) => {
      const errors: unknown[] = [];
      const options: RedisStoreOptions = { onStoreFailure: 'refuse', onError: (error) => errors.push(error) };
      const store = createRedisStore(fakeClient(() => Promise.resolve(reply)).client, options);
      const error: unknown = await Promise.resolve(store.consume('a', 'r', windowSet, 1)).catch(
        (reason: unknown) => reason,
      );
      expect(isHeadgateError(error, 'store_unavailable')).toBe(true);
      expect(errors).toHaveLength(1);
    },
  );

  it('a client that throws instead of rejecting leaves no timer', async () => {
    const { client } = fakeClient(() => {
      throw new Error('thrown');
    });
    const store = createRedisStore(client, { deadlineMs: 20 });
    expect((await store.consume('a', 'r', windowSet, 1)).degraded).toBe(true);
    await expect(store.reset({ account: 'a', route: 'r' })).rejects.toMatchObject({ code: 'store_unavailable' });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(store.stats().timeouts).toBe(0);
  });

  it('a reset throws within the deadline if the server never answers', async () => {
    const store = createRedisStore(fakeClient(() => new Promise(() => {})).client, { deadlineMs: 50 });
    for (const target of [{}, { account: 'a' }, { route: 'r' }, { account: 'a', route: 'r' }]) {
      await expect(store.reset(target)).rejects.toMatchObject({ code: 'store_timeout' });
    }
  });
});

describe('key names', () => {
  const names = createKeyNames('headgate');
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc
      .array(fc.constantFrom('{', '}', '%', ':', 'a', 'r', '\ud800', '\udc00', '007d'), { maxLength: 6 })
      .map((parts) => parts.join('')),
  );

  it('differ for different pairs', () => {
    const bytes = (key: string): string => Buffer.from(key).toString('hex');
    fc.assert(
      fc.property(
        text,
        fc.option(text, { nil: undefined }),
        text,
        fc.option(text, { nil: undefined }),
        (a, r, b, s) => {
          expect(bytes(names.record(a, r)) === bytes(names.record(b, s))).toBe(a === b && r === s);
        },
      ),
      { numRuns: randomRuns(500) },
    );
  });

  it('of one account share a hash slot of the cluster', async () => {
    const master = inject('redis').clusterPorts[0] as number;
    const node = new Redis({ port: master, host: '127.0.0.1' });
    try {
      const keyslot = async (key: string): Promise<unknown> => node.call('CLUSTER', 'KEYSLOT', key);
      await fc.assert(
        fc.asyncProperty(text, text, text, async (account, r, s) => {
          const slots = await Promise.all(
            [names.record(account), names.record(account, r), names.record(account, s)].map(keyslot),
          );
          expect(new Set(slots).size).toBe(1);
        }),
        { numRuns: randomRuns(80) },
      );
    } finally {
      node.disconnect();
    }
  });

  it("S14: an account or a route whose name is '' can be reset", async () => {
    const store = createRedisStore(redis, { prefix: `empty-${process.pid}`, deadlineMs: 5_000 });
    const once = createWindowSet([], parseLimit(['1/1h']));
    for (const target of [{ account: '' }, { route: '' }]) {
      expect((await store.consume('', '', once, 1)).accepted).toBe(true);
      await store.reset(target);
    }
    expect((await store.consume('', '', once, 1)).accepted).toBe(true);
  });
});

it("every key has an expiry after random histories with the server's clock", async () => {
  const prefix = `ttl-${process.pid}`;
  const { history } = createArbitraries(fc, { maxCommands: 30 });
  let runs = 0;
  const property = fc.asyncProperty(history, async ({ windowSets, commands }) => {
    const store = createRedisStore(redis, { prefix: `${prefix}-${runs++}`, deadlineMs: 5_000 });
    const decisions = [];
    let current = windowSets[0] as (typeof windowSets)[number];
    for (const command of commands) {
      if (command.type === 'consume') {
        decisions.push(await store.consume(command.account, command.route, current, command.cost));
      } else if (command.type === 'adjust') current = windowSets[command.pick % windowSets.length] as typeof current;
      else if (command.type === 'settle' && decisions.length > 0) {
        await store.settle(decisions[command.pick % decisions.length] as (typeof decisions)[number], command.cost);
      } else if (command.type === 'reset') await store.reset(command);
      else if (command.type === 'block') await store.block(command, command);
    }
    expect(store.stats().degraded).toBe(0);
  });
  await fc.assert(property, { numRuns: randomRuns(100) });
  let cursor = '0';
  let seen = 0;
  do {
    const [next, keys] = await redis.scan(cursor, 'MATCH', `${prefix}-*`, 'COUNT', 1_000);
    cursor = next;
    // -2: it has expired since the scan.
    for (const key of keys) expect(await redis.pttl(key)).not.toBe(-1);
    seen += keys.length;
  } while (cursor !== '0');
  expect(seen).toBeGreaterThan(20);
});
