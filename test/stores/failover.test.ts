import { describe, expect, it } from 'vitest';
import { createFailover } from '../../src/stores/shared/failover.ts';
import { windowSetFrom } from '../support/window-set.ts';

const windowSet = windowSetFrom(['5/1h']);
const ERROR = new Error('the store is down');

describe('failover', () => {
  it('S13: a decision of the local memory is settled there, once', () => {
    const failover = createFailover('local');
    const decide = () => failover.decide('a', 'r', windowSet, 1, ERROR);
    const [first, second] = [decide(), decide()];
    expect([failover.settle(first, 3), failover.settle(first, 0), failover.settle(second, 0)]).toEqual([
      true,
      false,
      true,
    ]);
    expect(decide()).toMatchObject({ accepted: true, degraded: true, shown: { remaining: 1 } });
  });

  it('a share of each max decides, rounded down, but at least 1; a max of 0 stays 0', () => {
    const failover = createFailover({ local: { share: 0.1 } });
    const admitted = (windows: readonly string[]): number => {
      const set = windowSetFrom(windows);
      const decisions = Array.from({ length: 40 }, () => failover.decide(windows.join(), 'r', set, 1, ERROR));
      expect(decisions.every(({ degraded }) => degraded)).toBe(true);
      return decisions.filter(({ accepted }) => accepted).length;
    };
    expect(admitted(['25/1h'])).toBe(2);
    expect(admitted(['300/1h', '10/1d'])).toBe(1);
    expect(admitted(['5/1h'])).toBe(1);
    expect(admitted(['0/1h'])).toBe(0);
    const decide = () => failover.decide('settled', 'r', windowSetFrom(['25/1h']), 2, ERROR);
    expect(failover.settle(decide(), 0)).toBe(true);
    expect(decide()).toMatchObject({ accepted: true, shown: { remaining: 0 } });
  });

  it('S13: a decision that charged nothing has nothing to settle', () => {
    const failover = createFailover('admit');
    expect(failover.settle(failover.decide('a', 'r', windowSet, 1, ERROR), 3)).toBe(false);
  });
});
