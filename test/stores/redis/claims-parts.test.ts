import fc from 'fast-check';
import { randomRuns } from 'headgate-testbed/nightly';
import { describe, expect, it } from 'vitest';
import { isHeadgateError } from '../../../src/base/errors.ts';
import {
  packText,
  readAbandonReply,
  readBeginReply,
  readCompleteReply,
  readHeldReply,
  readInspectReply,
} from '../../../src/stores/redis/claim-reply.ts';
import { createRedisClaimStore } from '../../../src/stores/redis/claims.ts';
import type { RedisClient } from '../../../src/stores/redis/client.ts';
import { claimKey, createKeyNames } from '../../../src/stores/redis/keys.ts';
import { serverOf, slotOf } from '../../../src/stores/redis/server-of.ts';
import { ServerTime } from '../../../src/stores/shared/server-time.ts';

const ID = { scope: 'app', key: 'k' };
const common = { token: 'a', fingerprint: 'f', retentionMs: 1_000 };
const begin = { ...common, leaseMs: 100, onOrphan: 'reject', dispatch: true } as const;

/** A client that records its commands, and replies with the result of `answer`. */
function fakeClient(answer: (command: string, args: readonly string[]) => unknown) {
  const sent: string[][] = [];
  const command =
    (name: string) =>
    (...args: string[]): Promise<unknown> => {
      sent.push([name, ...args]);
      return answer(name, args) as Promise<unknown>;
    };
  const names = ['evalshaBuffer', 'evalBuffer', 'unlink', 'scan'];
  const client = Object.fromEntries(names.map((name) => [name, command(name)])) as unknown as RedisClient;
  return { client, sent };
}

const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('names', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 4 }),
    fc
      .array(fc.constantFrom('', ':', '%', '{', '}', '003a', '%003a', 'a', '\ud800'), { maxLength: 4 })
      .map((parts) => parts.join('')),
  );

  it('I2: two different pairs never have the same name', () => {
    fc.assert(
      fc.property(text, text, text, text, (a, b, c, d) => {
        fc.pre(a !== c || b !== d);
        const bytes = (name: string) => Buffer.from(name).toString('hex');
        expect(bytes(claimKey('p', a, b))).not.toBe(bytes(claimKey('p', c, d)));
      }),
      { numRuns: randomRuns(4_000) },
    );
  });

  it("no claim has the name of a limiter's record, whatever the prefixes", () => {
    fc.assert(
      fc.property(
        fc.constantFrom('p', 'p:claim', ''),
        fc.constantFrom('p', 'p:claim', ''),
        text,
        text,
        (p, q, a, b) => {
          const names = createKeyNames(q);
          expect([names.record(a, b), names.record(a)]).not.toContain(claimKey(p, a, b));
          expect(names.parse(claimKey(p, a, b))).toBeUndefined();
        },
      ),
    );
  });

  it('the slot depends on scope and key', () => {
    expect(claimKey('headgate', 'app_1', 'order-17')).toBe('headgate:claim:{app_1:order-17}');
    // The result of CLUSTER KEYSLOT.
    expect(slotOf('x{123456789}')).toBe(0x31c3);
  });
});

describe('texts', () => {
  it('do not change when they are packed and unpacked, and different texts are packed differently', () => {
    const text = fc.string({
      unit: fc.constantFrom('a', '=', '~', '"', '\\', '\ud800', '\udc00', '\ufffd', '😀', '\u0000'),
      maxLength: 5,
    });
    fc.assert(
      fc.property(text, text, (one, other) => {
        const over = (value: string) => Buffer.from(packText(value)).toString();
        const reply = ['1', 'settled', over(one), over(other)];
        expect(readBeginReply(reply).reply).toEqual({ kind: 'settled', result: { status: one, value: other } });
        if (one !== other) expect(over(one)).not.toBe(over(other));
      }),
      { numRuns: randomRuns(1_000) },
    );
  });
});

describe('replies', () => {
  const replies: readonly [string, (reply: unknown) => unknown, readonly (readonly unknown[])[]][] = [
    [
      'begin',
      readBeginReply,
      [
        ['1', 'claimed', '1', '0', '1'],
        ['1', 'in_progress', '5'],
        ['1', 'mismatch', '=f'],
        ['1', 'settled', '=200', ''],
        ['1', 'orphan'],
        ['1', 'late'],
      ],
    ],
    [
      'held',
      readHeldReply,
      [
        ['1', 'ok'],
        ['1', 'lost'],
        ['1', 'settled', '=200', '=x'],
      ],
    ],
    [
      'complete',
      readCompleteReply,
      [
        ['1', 'ok'],
        ['1', 'lost'],
        ['1', 'superseded', '=200', '=x'],
      ],
    ],
    [
      'abandon',
      readAbandonReply,
      [
        ['1', 'released'],
        ['1', 'lost'],
        ['1', 'settled', '=200', '=x'],
      ],
    ],
    [
      'inspect',
      readInspectReply,
      [
        ['1', 'absent'],
        ['1', 'found', 'in_progress', '=f', '=a', '1', '0', '0', '', '', '5', '6'],
        ['1', 'found', 'free', '=f', '', '1', '0', '0', '', '', '0', '6'],
        ['1', 'found', 'completed', '=f', '=a', '0', '0', '0', '=200', '', '0', '6'],
      ],
    ],
  ];

  it.each(replies)('%s: replies of the script are read as texts, numbers or bytes', (_, read, good) => {
    for (const reply of good) {
      const expected = read(reply);
      const asNumbers = reply.map((part) => (/^\d+$/.test(String(part)) ? Number(part) : part));
      expect(read(asNumbers)).toEqual(expected);
      expect(read(reply.map((part) => Buffer.from(String(part))))).toEqual(expected);
      expect(read(reply.map((part) => (/^\d+$/.test(String(part)) ? BigInt(String(part)) : part)))).toEqual(expected);
    }
  });

  it.each(replies)('%s: any other reply is refused, and the error does not show it', (_, read, good) => {
    const bad = [
      null,
      undefined,
      true,
      'OK',
      7,
      [],
      {},
      ['1'],
      ['1', null],
      ['x', 'ok'],
      ['1', 'no such word'],
      ['1.5', 'ok'],
      ['', 'ok'],
      ['1e300', 'ok'],
    ];
    for (const reply of bad) expect(() => read(reply)).toThrow(TypeError);
    for (const reply of good) {
      expect(() => read([...reply, 'secret'])).toThrow(/^((?!secret).)*$/);
      expect(() => read(reply.slice(0, -1))).toThrow(TypeError);
      for (let i = 0; i < reply.length; i++) {
        for (const part of [null, true, [], 'secret']) {
          expect(() => read(reply.with(i, part)), JSON.stringify(reply.with(i, part))).toThrow(/^((?!secret).)*$/);
        }
      }
    }
    const flags = [
      ['1', 'claimed', '0', '0', '0'],
      ['1', 'claimed', '1', '2', '0'],
      ['1', 'in_progress', '0'],
      ['1', 'mismatch', '~f'],
      ['1', 'mismatch', '~1'],
    ];
    for (const reply of flags) expect(() => read(reply)).toThrow(TypeError);
  });

  it('an invalid reply to begin is an error that names the key, never an execution', async () => {
    for (const reply of [null, 'claimed', ['1', 'claimed'], ['1', 'claimed', '1', '0', 'yes'], [1, 'ok']]) {
      const errors: unknown[] = [];
      const { client, sent } = fakeClient(() => Promise.resolve(reply));
      const store = createRedisClaimStore(client, { onError: (error) => errors.push(error) });
      const error = await failure(store.begin(ID, begin));
      expect(isHeadgateError(error, 'store_unavailable')).toBe(true);
      expect((error as Error).message).toContain('headgate:claim:{app:k}');
      expect(errors).toHaveLength(1);
      expect(sent).toHaveLength(1);
    }
  });
});

describe('the script', () => {
  it('is sent as source if the server does not have it, and after no other error', async () => {
    const unknown = fakeClient((name) =>
      name === 'evalshaBuffer'
        ? Promise.reject(new Error('NOSCRIPT No matching script.'))
        : Promise.resolve(['1', 'orphan']),
    );
    expect(await createRedisClaimStore(unknown.client).begin(ID, begin)).toEqual({ kind: 'orphan' });
    expect(unknown.sent.map(([name]) => name)).toEqual(['evalshaBuffer', 'evalBuffer']);
    for (const message of ['ERR NOSCRIPT', 'LOADING', 'READONLY', 'OOM', 'Connection is closed.']) {
      const { client, sent } = fakeClient(() => Promise.reject(new Error(message)));
      const error = await failure(createRedisClaimStore(client).begin(ID, begin));
      expect(isHeadgateError(error, 'store_unavailable')).toBe(true);
      expect((error as Error).message).toContain(message);
      expect(sent).toHaveLength(1);
    }
  });

  it('I12: every command throws within the deadline if the server never answers', async () => {
    const { client } = fakeClient(() => new Promise(() => {}));
    const store = createRedisClaimStore(client, { deadlineMs: 30 });
    const held = { ...common, leaseMs: 1, generation: 1 };
    const errors = await Promise.all(
      [
        store.begin(ID, begin),
        store.extend(ID, held),
        store.dispatch(ID, held),
        store.complete(ID, { ...common, result: { status: '200', value: 'x' } }),
        store.abandon(ID, { ...common, releasedRetentionMs: 1_000, generation: undefined }),
        store.inspect(ID),
      ].map(failure),
    );
    for (const error of errors) expect(isHeadgateError(error, 'store_timeout')).toBe(true);
    expect(store.stats()).toMatchObject({ calls: 6, timeouts: 6, late: 0 });
  });

  it('a command throws at once if the client is not connected, and nothing is sent', async () => {
    const { client, sent } = fakeClient(() => Promise.resolve(['1', 'orphan']));
    const store = createRedisClaimStore({ ...client, status: 'reconnecting' } as RedisClient);
    expect(isHeadgateError(await failure(store.begin(ID, begin)), 'store_unavailable')).toBe(true);
    expect(sent).toEqual([]);
  });
});

describe("the server's time", () => {
  const dispatches = (args: readonly string[] | undefined) => args?.at(-2);
  const deadlineOf = (args: readonly string[] | undefined) => args?.at(-1);

  it('begin only dispatches once the time of the server is known, and then has a deadline on that clock', async () => {
    const { client, sent } = fakeClient(() => Promise.resolve(['5000000', 'claimed', '1', '0', '0']));
    const store = createRedisClaimStore(client, { deadlineMs: 250 });
    const startedAt = performance.now();
    await store.begin(ID, begin);
    expect([dispatches(sent[0]), deadlineOf(sent[0])]).toEqual(['0', '']);
    await store.begin(ID, begin);
    expect(dispatches(sent[1])).toBe('1');
    // The reported time, plus the elapsed time, plus the deadline, minus 2 ms for rounding.
    expect(Number(deadlineOf(sent[1]))).toBeGreaterThanOrEqual(5_000_000 + 248 - 1);
    expect(Number(deadlineOf(sent[1]))).toBeLessThanOrEqual(5_000_000 + 248 + performance.now() - startedAt + 1);
    await store.begin(ID, { ...begin, dispatch: false });
    expect([dispatches(sent[2]), deadlineOf(sent[2])]).toEqual(['0', '']);
  });

  it('every reply reports the time, even `late`', async () => {
    const { client, sent } = fakeClient((_, args) =>
      Promise.resolve(args.includes('inspect') ? ['5000000', 'absent'] : ['5000000', 'late']),
    );
    const store = createRedisClaimStore(client);
    await store.inspect(ID);
    expect(await store.begin(ID, begin)).toEqual({ kind: 'late' });
    expect(dispatches(sent[1])).toBe('1');
    expect(store.stats()).toMatchObject({ calls: 2, lateBegins: 1, late: 0, timeouts: 0, breaker: 'closed' });
  });

  it('a reported time is used for one minute', () => {
    const time = new ServerTime();
    expect(time.deadline('a', 0, 250)).toBeUndefined();
    time.report('a', 1_000_000, 500);
    expect(time.deadline('a', 500, 250)).toBe(1_000_248);
    expect(time.deadline('a', 60_500, 250)).toBe(1_060_248);
    expect(time.deadline('a', 60_501, 250)).toBeUndefined();
  });

  it('S15: each server has its own report, and reports do not pile up', () => {
    const time = new ServerTime();
    time.report('a', 1, 0);
    time.report('b', 1_000_000, 0);
    expect([time.deadline('a', 0, 2), time.deadline('b', 0, 2), time.deadline('c', 0, 2)]).toEqual([
      1,
      1_000_000,
      undefined,
    ]);
    for (let i = 0; i < 20_000; i++) time.report(`server ${i}`, i, 0);
    expect(time.deadline('a', 0, 2)).toBeUndefined();
  });

  it("the server of a key is taken from the client's table of slots", () => {
    const slot = slotOf('p:{k}');
    const slots = Array.from({ length: 16_384 }, (_, i) => i);
    expect(serverOf({}, 'p:{k}')).toBe('');
    expect(serverOf({ slots: slots.map((i) => [`host:${i}`, 'replica:1']) }, 'p:{k}')).toBe(`host:${slot}`);
    expect(serverOf({ slots: slots.map((i) => ({ master: { address: `host:${i}` } })) }, 'p:{k}')).toBe(`host:${slot}`);
    for (const unknown of [[], slots, slots.map(() => undefined), slots.map(() => ({}))]) {
      expect(serverOf({ slots: unknown }, 'p:{k}')).toBe(`slot ${slot}`);
    }
  });
});

describe('options', () => {
  it.each([
    [{ prefix: 'a{b}' }, 'prefix'],
    [{ prefix: 7 as never }, 'prefix'],
    [{ deadlineMs: 0 }, 'deadlineMs'],
    [{ deadlineMs: 1.5 }, 'deadlineMs'],
    [{ deadline: 1 } as never, 'deadline'],
  ])('%j is refused; the error names the option', (options, name) => {
    expect(() => createRedisClaimStore(fakeClient(() => undefined).client, options)).toThrow(name);
  });

  it('a client of another library is refused', () => {
    expect(() => createRedisClaimStore({} as RedisClient)).toThrow('client');
  });
});
