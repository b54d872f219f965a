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

  it('S13: a decision that charged nothing has nothing to settle', () => {
    const failover = createFailover('admit');
    expect(failover.settle(failover.decide('a', 'r', windowSet, 1, ERROR), 3)).toBe(false);
  });
});
