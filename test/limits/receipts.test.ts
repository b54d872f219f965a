/** S37: another process settles a decision by its receipt, once. */
import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decorateStore } from '../../src/core/decorate-store.ts';
import { createGate, createLimiter, isHeadgateError, type LimiterOptions } from '../../src/index.ts';
import { createReceipts } from '../../src/limits/index.ts';
import { withShadow } from '../../src/shadow/shadow.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFailover } from '../../src/stores/shared/failover.ts';
import { anyString } from '../../src/testing/arbitraries.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';
import { windowSetFrom } from '../support/window-set.ts';

const SECRET = 'a secret of thirty-two characters';
const OTHER_SECRET = 'another secret, which is long enough';
const SUBJECT = { account: 'acc_1', route: 'POST /emails' };

function start(options: Partial<LimiterOptions> = {}) {
  const clock = createFakeClock(1_000_000);
  const store = createMemoryStore({ clock });
  const given = {
    store,
    limits: { allMethods: ['100/1m', '500/1h'] },
    receipts: createReceipts({ secret: SECRET }),
    validate: false,
  };
  const create = (more: Partial<LimiterOptions> = {}) => createLimiter({ ...given, ...options, ...more });
  const limiter = create();
  const left = async () => (await limiter.peek(SUBJECT)).map(({ remaining }) => remaining);
  return { clock, store, create, limiter, left };
}

const faultOf = (call: Promise<unknown>): Promise<string> =>
  call.then(String, (error) => `${error.code}: ${error.message}`);

/** A receipt of this content, signed with the secret. */
function signed(content: unknown, secret = SECRET): string {
  const payload = Buffer.from(typeof content === 'string' ? content : JSON.stringify(content)).toString('base64url');
  return `1.${payload}.${createHmac('sha256', secret).update(`headgate.receipt.1.${payload}`).digest('base64url')}`;
}

describe('a receipt', () => {
  it('of counters with another name is a ReceiptError, because it could never be settled', async () => {
    const named = (counters: string | undefined) => {
      const store = createMemoryStore();
      return decorateStore({ ...decorateStore(store, {}), identity: { counters } }, {});
    };
    const { create } = start();
    const { receipt } = await create({ store: named('redis api') }).consume(SUBJECT);
    expect(await faultOf(create({ store: named('redis other') }).settle(receipt, 5))).toBe(
      'invalid_receipt: the receipt is of the counters "redis api", and the store of this limiter has "redis other"',
    );
    for (const counters of ['redis api', undefined])
      expect(await create({ store: named(counters) }).settle(receipt, 5)).toBe(false);
  });

  it('settles the decision in another process, once', async () => {
    const { create, limiter, left } = start();
    const { receipt } = await limiter.consume({ ...SUBJECT, cost: 10 });
    expect(receipt).toMatch(/^[\w.-]+$/);
    expect(receipt.length).toBeLessThan(300);
    const worker = create();
    expect([await worker.settle(receipt, 25), await left()]).toEqual([true, [75, 475]]);
    expect([await worker.settle(receipt, 1), await worker.refund(receipt), await left()]).toEqual([
      false,
      false,
      [75, 475],
    ]);
  });

  it('is the same text each time, and counts as one with its decision', async () => {
    const { create, limiter, left } = start();
    const first = limiter.consumeSync({ ...SUBJECT, cost: 10 });
    expect(first.receipt).toBe(first.receipt);
    expect([await limiter.settle(first, 5), await limiter.refund(first.receipt)]).toEqual([true, false]);
    const second = limiter.consumeSync({ ...SUBJECT, cost: 10 });
    expect(second.receipt).not.toBe(first.receipt);
    expect([await create().refund(second.receipt), await limiter.refund(second), await left()]).toEqual([
      true,
      false,
      [95, 495],
    ]);
    // A decision that was settled before its receipt was read leaves nothing to settle.
    const third = limiter.consumeSync(SUBJECT);
    await limiter.settle(third, 7);
    expect([await create().refund(third.receipt), await left()]).toEqual([false, [88, 488]]);
  });

  it('is worthless when its windows are over, and of a decision that charged nothing', async () => {
    const { clock, create, limiter, left } = start();
    const { receipt } = limiter.consumeSync({ ...SUBJECT, cost: 100 });
    const rejected = limiter.consumeSync(SUBJECT);
    expect([rejected.accepted, await create().refund(rejected.receipt)]).toEqual([false, false]);
    clock.advance(3_600_000);
    limiter.consumeSync(SUBJECT);
    expect([await create().refund(receipt), await left()]).toEqual([false, [99, 499]]);
    const unlimited = start({ limits: { unlimited: true } }).limiter;
    expect(await unlimited.refund(unlimited.consumeSync(SUBJECT).receipt)).toBe(false);
  });

  it('S10: works although the limits were changed meanwhile', async () => {
    const { create, limiter } = start();
    const { receipt } = limiter.consumeSync({ ...SUBJECT, cost: 10 });
    const worker = create({ limits: { allMethods: ['200/1m', '9/1d'], routes: { 'POST /emails': ['5/1m'] } } });
    worker.consumeSync(SUBJECT);
    expect(await worker.refund(receipt)).toBe(true);
    expect((await worker.peek(SUBJECT)).map(({ remaining }) => remaining)).toEqual([4, 199, 8]);
  });

  it('names any account and route, and all windows of a set with a scope', async () => {
    await fc.assert(
      fc.asyncProperty(anyString(fc, 40), fc.constantFrom('', '\ud800', '{}', 'ü:%'), async (account, route) => {
        const limits = {
          allMethods: { windows: ['9/1m'], scope: 'account' as const },
          routes: { [route]: ['9/1h'] },
        };
        const { create, limiter } = start({ limits });
        const { receipt } = limiter.consumeSync({ account, route, cost: 3 });
        expect(await create().settle(receipt, 1)).toBe(true);
        expect((await limiter.peek({ account, route })).map(({ remaining }) => remaining)).toEqual([8, 8]);
      }),
      { numRuns: 50 },
    );
  });

  it('of a degraded decision settles nothing elsewhere', async () => {
    const failover = createFailover('local');
    const { store, create, left } = start();
    const consume = () => failover.decide('acc_1', SUBJECT.route, windowSetFrom([], ['100/1m']), 1, new Error('down'));
    const limiter = create({ store: Object.assign(Object.create(store), { synchronous: false, consume }) });
    const decision = await limiter.consume(SUBJECT);
    expect(decision.degraded).toBe(true);
    expect([await create().refund(decision.receipt), await left()]).toEqual([false, [100, 500]]);
  });

  it('reaches a handler behind a gate', async () => {
    const { create, limiter, left } = start();
    const gate = createGate<string>({ limiter, account: () => SUBJECT.account, route: () => SUBJECT.route });
    const passage = await gate.enter('');
    if (passage.kind !== 'proceed') throw new Error('rejected');
    const receipt = passage.decision?.receipt as string;
    passage.settle({ status: 202 });
    expect([await create().settle(receipt, 3), await left()]).toEqual([true, [97, 497]]);
  });

  it('S27: a limiter with a shadow has receipts too', async () => {
    const { create, limiter, left } = start();
    const shadowed = withShadow(limiter, { limits: { allMethods: ['5/1m'] }, store: createMemoryStore() });
    const { receipt } = await shadowed.consume({ ...SUBJECT, cost: 3 });
    expect([await shadowed.refund(receipt), await create().refund(receipt), await left()]).toEqual([
      true,
      false,
      [100, 500],
    ]);
  });

  it('is in no log of the decision', () => {
    const decision = start().limiter.consumeSync(SUBJECT);
    expect(JSON.stringify(decision)).not.toContain(decision.receipt);
    expect(Object.keys(decision)).not.toContain('receipt');
  });
});

it('S13: the decision of another limiter changes nothing, also if its receipt was read', async () => {
  const { limiter } = start();
  const others = createMemoryStore();
  const settle = others.settle.bind(others);
  const store = Object.assign(Object.create(others), { settle, settleOnce: undefined });
  const other = createLimiter({ store, limits: ['5/1m'] });
  const decision = limiter.consumeSync(SUBJECT);
  expect(decision.receipt).not.toBe('');
  expect([await other.refund(decision), await limiter.refund(decision)]).toEqual([false, true]);
});

describe('a bad receipt', () => {
  it('is a ReceiptError, and changes nothing', async () => {
    const { limiter, left } = start();
    const { receipt } = limiter.consumeSync({ ...SUBJECT, cost: 10 });
    const [, payload = '', signature = ''] = receipt.split('.');
    const forged = Buffer.from(payload, 'base64url').toString().replace('acc_1', 'acc_2');
    const bad: Record<string, RegExp> = {
      '': /is not one, or is damaged/,
      [`2.${payload}.${signature}`]: /is not one/,
      [receipt.slice(0, -1)]: /is not one/,
      [`${receipt} `]: /is not one/,
      [`1.${Buffer.from(forged).toString('base64url')}.${signature}`]: /has another signature/,
      [`1.${payload}.${'A'.repeat(43)}`]: /has another signature/,
      [signed(forged, OTHER_SECRET)]: /has another signature/,
      ['1'.repeat(8_193)]: /has more than 8192 characters/,
      [signed('not JSON')]: /is signed, but damaged/,
      [signed({})]: /is signed, but damaged/,
      [signed(['id', 'a', 'r', 1, 1, 0, []])]: /is signed, but damaged/,
      [signed(['a'.repeat(22), 'a', 'r', 1.5, 1, 0, []])]: /is signed, but damaged/,
      [signed(['a'.repeat(22), 'a', 'r', 1, 1, 0, [['r60000', 'x']]])]: /is signed, but damaged/,
    };
    for (const [text, reason] of Object.entries(bad)) {
      const fault = await faultOf(limiter.settle(text, 0));
      expect(fault).toMatch(/^invalid_receipt: the receipt /);
      expect(fault).toMatch(reason);
      if (text !== '') expect(fault).not.toContain(text);
    }
    for (let i = 0; i < receipt.length; i++) {
      const damaged = `${receipt.slice(0, i)}${receipt[i] === 'A' ? 'B' : 'A'}${receipt.slice(i + 1)}`;
      await expect(limiter.refund(damaged)).rejects.toSatisfy((error) => isHeadgateError(error, 'invalid_receipt'));
    }
    expect(await left()).toEqual([90, 490]);
    expect(await faultOf(limiter.settle(receipt, -1))).toMatch(/^invalid_cost/);
    expect(await limiter.refund(receipt)).toBe(true);
  });
});

describe('the secret', () => {
  it('can be replaced: the first one signs, and all are accepted', async () => {
    const { create } = start();
    const [before, during, after] = [
      create(),
      create({ receipts: createReceipts({ secret: [OTHER_SECRET, SECRET] }) }),
      create({ receipts: createReceipts({ secret: OTHER_SECRET }) }),
    ];
    const old = before.consumeSync(SUBJECT).receipt;
    expect(await faultOf(after.refund(old))).toMatch(/^invalid_receipt/);
    expect(await during.refund(old)).toBe(true);
    const { receipt } = during.consumeSync(SUBJECT);
    expect(await faultOf(before.refund(receipt))).toMatch(/^invalid_receipt/);
    expect(await after.refund(receipt)).toBe(true);
  });

  it('must be given, and long enough; no message shows it', async () => {
    const { create } = start();
    const without = create({ receipts: undefined });
    const decision = await without.consume(SUBJECT);
    expect(() => decision.receipt).toThrow(
      /^receipts: must be given to createLimiter, as createReceipts\(\{ secret \}\)/,
    );
    expect(await faultOf(without.settle('1.a.b', 0))).toMatch(/^invalid_option: receipts: must be given to settle/);
    for (const secret of ['', 'too short', [], [SECRET, 'too short'], undefined, 1] as never[]) {
      const fault = () => create({ receipts: createReceipts({ secret }) });
      expect(fault).toThrow(/^secret: must be a string of at least 32 characters, or a list of such strings/);
      expect(fault).not.toThrow(/too short|thirty/);
    }
    expect(() => createReceipts({ secret: SECRET, key: 1 } as never)).toThrow(/^options.key: unknown option/);
    expect(() => create({ receipts: { secret: SECRET } as never })).toThrow(
      /^receipts: must have read\(\), as createReceipts\(\{ secret \}\) does/,
    );
  });

  it('needs a store that remembers receipts', () => {
    const { store, create } = start();
    const { consume, peek, settle, reset } = store as never;
    expect(() => create({ store: { synchronous: true, consume, peek, settle, reset } as never })).toThrow(
      /^store: must have settleOnce\(\): this store cannot remember receipts/,
    );
  });
});

it('account and route that are too long for a receipt are an OptionError, and the decision can still be settled', async () => {
  const { limiter } = start();
  const decision = limiter.consumeSync({ ...SUBJECT, account: 'x'.repeat(8_000) });
  expect(() => decision.receipt).toThrow(/^account and route: are too long for a receipt/);
  expect(await limiter.refund(decision)).toBe(true);
});

it('S18: a memory store remembers up to maxKeys receipts, forgets none that matters, and says when it is full', async () => {
  const clock = createFakeClock(1_000_000);
  const store = createMemoryStore({ clock, maxKeys: 300 });
  const limiter = createLimiter({ store, limits: ['9999/1m'], receipts: createReceipts({ secret: SECRET }) });
  const consume = () => limiter.consumeSync({ account: 'a' });
  const first = consume();
  expect(await limiter.refund(first.receipt)).toBe(true);
  for (let i = 1; i < 300; i++) expect(await limiter.refund(consume().receipt)).toBe(true);
  const last = consume();
  expect(await faultOf(limiter.refund(last.receipt))).toMatch(
    /^store_full: the store is full with 300 settled receipts/,
  );
  expect([await limiter.refund(first.receipt), (await limiter.peek({ account: 'a' }))[0]?.remaining]).toEqual([
    false,
    9_998,
  ]);
  clock.advance(60_000);
  expect([await limiter.refund(consume().receipt), await limiter.refund(first.receipt)]).toEqual([true, false]);
});
