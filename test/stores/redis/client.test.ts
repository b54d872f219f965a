/** The commands of the stores, in one form for every client. The client is detected by its methods. */
import { describe, expect, it } from 'vitest';
import { isHeadgateError } from '../../../src/base/errors.ts';
import { type Commands, commandsOf, type RedisClient, scanAll } from '../../../src/stores/redis/client.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';

type Call = readonly unknown[];
type Page = readonly [cursor: string | number, keys: readonly string[]];

/** Pages of a SCAN, one per call, whatever the cursor. */
const pager = (pages: readonly Page[]): (() => Page) => {
  const left = [...pages];
  return () => left.shift() ?? ['0', ['called too often']];
};

/** Methods that record their calls. */
const recorder =
  (calls: Call[]) =>
  (name: string, answer: (...args: unknown[]) => unknown) =>
  (...args: unknown[]): Promise<unknown> => {
    calls.push([name, ...args]);
    return Promise.resolve(answer(...args));
  };

function fakeIoredis(calls: Call[] = [], pages: readonly Page[] = [['0', []]]): Record<string, unknown> {
  const record = recorder(calls);
  return {
    evalshaBuffer: record('evalshaBuffer', () => 'called'),
    evalBuffer: record('evalBuffer', () => 'called'),
    unlink: record('unlink', () => 1),
    scan: record('scan', pager(pages)),
  };
}

function fakeNodeRedis(calls: Call[] = [], pages: readonly Page[] = [['0', []]]): Record<string, unknown> {
  const record = recorder(calls);
  const next = pager(pages);
  const client: Record<string, unknown> = {
    withTypeMapping: () => client,
    evalSha: record('evalSha', () => 'called'),
    eval: record('eval', () => 'called'),
    unlink: record('unlink', () => 1),
    scan: record('scan', () => {
      const [cursor, keys] = next();
      return { cursor, keys };
    }),
  };
  return client;
}

const of = (client: unknown): Commands => commandsOf('client', client as RedisClient);

async function scanned(client: unknown, pattern = 'p*'): Promise<string[]> {
  const keys: string[] = [];
  for await (const page of scanAll(of(client), pattern)) keys.push(...page);
  return keys;
}

describe('a client', () => {
  it('is detected by its methods, whatever the name of its class', async () => {
    class x {}
    const calls: Call[] = [];
    await of(Object.assign(new x(), fakeIoredis(calls))).evalsha('sha', ['k'], ['a', 'b']);
    await of(Object.assign(new x(), fakeNodeRedis(calls))).evalsha('sha', ['k'], ['a', 'b']);
    expect(calls).toEqual([
      ['evalshaBuffer', 'sha', 1, 'k', 'a', 'b'],
      ['evalSha', 'sha', { keys: ['k'], arguments: ['a', 'b'] }],
    ]);
  });

  it('can have its methods itself or from its class', async () => {
    class Client {
      evalshaBuffer(): void {}
      evalBuffer(...args: unknown[]): Promise<unknown> {
        return Promise.resolve(args);
      }
    }
    expect(await of(new Client()).eval('source', ['k', 'l'], ['a'])).toEqual(['source', 2, 'k', 'l', 'a']);
  });

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['a URL', 'redis://127.0.0.1'],
    ['an object whose class only has the name', new (class Redis {})()],
    ['a client of another library', { get: () => {}, set: () => {} }],
    ['an object whose properties are not methods', { evalshaBuffer: true, evalSha: 'yes' }],
  ])('that is %s is refused when the store is created; the error names the option', (_what, client) => {
    let error: unknown;
    try {
      createRedisStore(client as unknown as RedisClient);
    } catch (thrown) {
      error = thrown;
    }
    expect(isHeadgateError(error)).toBe(true);
    expect(String(error)).toMatch(/client/);
  });

  it.each([
    ['ioredis', fakeIoredis],
    ['node-redis', fakeNodeRedis],
  ])('gets no command when the store is created: %s', (_name, fake) => {
    const calls: Call[] = [];
    createRedisStore(fake(calls) as unknown as RedisClient);
    expect(calls).toEqual([]);
  });
});

describe('isReady', () => {
  it.each([
    ['ready', true],
    ['wait', true],
    ['connecting', false],
    ['connect', false],
    ['reconnecting', false],
    ['close', false],
    ['end', false],
    [undefined, true],
  ])('status %s of ioredis: %s', (status, ready) => {
    expect(of({ ...fakeIoredis(), status }).isReady()).toBe(ready);
  });

  it.each([
    [true, true],
    [false, false],
    // A cluster of node-redis does not have the property.
    [undefined, true],
  ])('isReady %s of node-redis: %s', (isReady, ready) => {
    expect(of({ ...fakeNodeRedis(), isReady }).isReady()).toBe(ready);
  });

  it('is the state at that moment, not the state when the store was created', () => {
    const client: Record<string, unknown> = { ...fakeIoredis(), status: 'ready' };
    const commands = of(client);
    client.status = 'reconnecting';
    expect(commands.isReady()).toBe(false);
  });
});

describe('scan', () => {
  it.each([
    ['ioredis', fakeIoredis, ['scan', '7', 'MATCH', 'p*', 'COUNT', '1000']],
    ['node-redis', fakeNodeRedis, ['scan', '7', { MATCH: 'p*', COUNT: 1_000 }]],
  ])('reads page by page until the cursor is 0 again, even after an empty page: %s', async (_name, fake, second) => {
    const calls: Call[] = [];
    const pages: Page[] = [
      ['7', ['a']],
      ['9007199254740993', []],
      ['0', ['b']],
    ];
    expect(await scanned(fake(calls, pages))).toEqual(['a', 'b']);
    expect(calls).toHaveLength(3);
    expect(calls[1]).toEqual(second);
    // A cursor has 64 bits. As a JavaScript number it would be another one.
    expect(calls[2]?.[1]).toBe('9007199254740993');
  });

  it('accepts a cursor that node-redis returns as a number', async () => {
    const pages: Page[] = [
      [7, ['a']],
      [0, ['b']],
    ];
    expect(await scanned(fakeNodeRedis([], pages))).toEqual(['a', 'b']);
  });

  it('reads every master of a cluster, and no replica: ioredis', async () => {
    const asked: unknown[] = [];
    const masters = [
      fakeIoredis(
        [],
        [
          ['3', ['a']],
          ['0', ['b']],
        ],
      ),
      fakeIoredis([], [['0', ['c']]]),
    ];
    const nodes = (role: string): unknown[] => {
      asked.push(role);
      return masters;
    };
    const cluster = { ...fakeIoredis([], [['0', ['of only one node']]]), nodes };
    expect(await scanned(cluster)).toEqual(['a', 'b', 'c']);
    expect(asked).toEqual(['master']);
  });

  it.each([
    ['directly', (client: unknown) => client],
    ['in a promise', (client: unknown) => Promise.resolve(client)],
  ])('reads every master of a cluster that returns its clients %s: node-redis', async (_how, give) => {
    const masters = [{ id: 0 }, { id: 1 }];
    const ofNode = [
      fakeNodeRedis(
        [],
        [
          ['3', ['a']],
          ['0', ['b']],
        ],
      ),
      fakeNodeRedis([], [['0', ['c']]]),
    ];
    const { scan: _none, ...cluster } = fakeNodeRedis();
    const client = { ...cluster, masters, nodeClient: ({ id }: { id: number }) => give(ofNode[id]) };
    expect(await scanned(client)).toEqual(['a', 'b', 'c']);
  });

  it('throws if a master fails, instead of leaving out its keys', async () => {
    const broken = { ...fakeIoredis(), scan: () => Promise.reject(new Error('CLUSTERDOWN')) };
    const cluster = { ...fakeIoredis(), nodes: () => [fakeIoredis([], [['0', ['a']]]), broken] };
    await expect(scanned(cluster)).rejects.toThrow('CLUSTERDOWN');
  });
});

it('a cluster is detected, because its scripts can only touch one slot', () => {
  expect(of(fakeIoredis()).isCluster).toBe(false);
  expect(of({ ...fakeIoredis(), nodes: () => [] }).isCluster).toBe(true);
  expect(of(fakeNodeRedis()).isCluster).toBe(false);
  expect(of({ ...fakeNodeRedis(), nodeClient: () => {}, masters: [] }).isCluster).toBe(true);
});
