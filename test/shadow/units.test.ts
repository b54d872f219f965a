/** S27, S33: a candidate decides about units, and sees the corrected cost of each. */
import { expect, it } from 'vitest';
import { createLimiter } from '../../src/limits/limiter.ts';
import { withShadow } from '../../src/shadow/shadow.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';

const COST = { requests: 1, tokens: 400 };

it('S27: the candidate decides unit by unit, and repeats settlements, penalties and resets of units', async () => {
  const store = createMemoryStore();
  const candidate = createMemoryStore();
  const limits = ['9/1h', '5000 tokens/1h'];
  const limiter = withShadow(createLimiter({ store, limits, validate: false }), {
    limits: { allMethods: { windows: ['9/1h', '1000 tokens/1h'], scope: 'account' } },
    store: candidate,
  });
  const counted = createLimiter({ store: candidate, limits: ['9/1h', '1000 tokens/1h'], validate: false });
  const left = async () => (await counted.peek({ account: 'a' })).map(({ remaining }) => remaining);
  const request = { account: 'a', cost: COST };
  const first = limiter.consumeSync(request);
  await limiter.settle(first, { tokens: 100 });
  await limiter.settle(first, { requests: 0 });
  await limiter.shadow.idle();
  expect(await left()).toEqual([9, 900]);
  for (let i = 0; i < 3; i++) limiter.consumeSync(request);
  await limiter.shadow.idle();
  expect(limiter.shadow.figures().total).toMatchObject({ none: 3, onlyCandidate: 1, failed: 0 });
  expect(await left()).toEqual([7, 100]);
  await limiter.charge({ account: 'a', cost: { tokens: 50 } });
  await limiter.shadow.idle();
  expect(await left()).toEqual([7, 50]);
  await limiter.reset({ account: 'a' });
  await limiter.shadow.idle();
  expect(await left()).toEqual([9, 1_000]);
});

it('S27: a candidate without the unit ignores it, and one that is a function may return it', async () => {
  const figuresOf = async (limits: Parameters<typeof withShadow>[1]['limits']) => {
    const current = createLimiter({ store: createMemoryStore(), limits: ['9/1h', '5000 tokens/1h'], validate: false });
    const limiter = withShadow(current, { limits, store: createMemoryStore() });
    for (let i = 0; i < 3; i++) limiter.consumeSync({ account: 'a', cost: COST });
    await limiter.shadow.idle();
    return limiter.shadow.figures().total;
  };
  expect(await figuresOf(['2/1h'])).toMatchObject({ none: 2, onlyCandidate: 1, failed: 0 });
  expect(await figuresOf(() => ['400 tokens/1h'])).toMatchObject({ none: 1, onlyCandidate: 2, failed: 0 });
});
