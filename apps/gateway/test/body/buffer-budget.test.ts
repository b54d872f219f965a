import fc from 'fast-check';
import { expect, it } from 'vitest';
import { BufferBudget } from '../../src/body/buffer-budget.ts';

it('bounds the sum, and the sum of each application', () => {
  const budget = new BufferBudget({ maxBytes: 100, maxApplicationBytes: 60 });
  const [a, again, b] = [budget.open('a'), budget.open('a'), budget.open('b')];
  expect([a.add(50), again.add(11), again.add(10), b.add(41), b.add(40)]).toEqual([true, false, true, false, true]);
  expect(budget.bytes).toBe(100);
  a.remove(20);
  expect([b.add(21), b.add(20)]).toEqual([false, true]);
});

it('what was released is free again, once, and nothing can be added to it', () => {
  const budget = new BufferBudget({ maxBytes: 100, maxApplicationBytes: 100 });
  const [share, other] = [budget.open('a'), budget.open('a')];
  share.add(60);
  other.add(40);
  share.remove(1_000);
  share.release();
  share.release();
  share.remove(1);
  expect(share.add(1)).toBe(false);
  expect(budget.bytes).toBe(40);
  other.release();
  expect(budget.bytes).toBe(0);
});

it('is empty after all shares were released, whatever was added and removed before', () => {
  const steps = fc.array(fc.tuple(fc.nat(5), fc.constantFrom('add', 'remove', 'release'), fc.nat(200)));
  fc.assert(
    fc.property(steps, (list) => {
      const limits = { maxBytes: 500, maxApplicationBytes: 300 };
      const budget = new BufferBudget(limits);
      const shares = Array.from({ length: 6 }, (_, i) => budget.open(`app_${i % 3}`));
      for (const [index, step, bytes] of list) {
        const share = shares[index];
        if (step === 'release') share?.release();
        else share?.[step as 'add'](bytes);
        expect(budget.bytes).toBeGreaterThanOrEqual(0);
        expect(budget.bytes).toBeLessThanOrEqual(limits.maxBytes);
      }
      for (const share of shares) share.release();
      expect(budget.bytes).toBe(0);
      expect(budget.open('app_0').add(limits.maxApplicationBytes)).toBe(true);
    }),
  );
});
