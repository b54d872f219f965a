import { describe, expect, it } from 'vitest';
import { BudgetSpent, WorkBudget } from '../../src/admission/work-budget.ts';

/** A budget of 100 ms, and a clock that only work moves. */
function budgetOf() {
  let now = 5_000;
  const budget = new WorkBudget(100, () => now);
  const wait = (ms: number) => {
    now += ms;
  };
  /** Work of one request in one piece. */
  const work = async (application: string, ms: number) => {
    const meter = budget.meter(application);
    await meter.run(() => wait(ms));
    meter.end();
    return meter;
  };
  return { budget, wait, work };
}

describe('WorkBudget', () => {
  it('is spent by the work of other requests of the application, for the rest of a minute', async () => {
    const { budget, wait, work } = budgetOf();
    await work('app_1', 60);
    expect(budget.meter('app_1').retryAfter).toBeUndefined();
    await work('app_1', 60);
    expect(budget.meter('app_1').retryAfter).toBe(60);
    expect(budget.meter('app_2').retryAfter).toBeUndefined();
    await expect(work('app_1', 1)).rejects.toThrow(BudgetSpent);
    await work('app_2', 10);
    wait(59_000 - 130);
    expect(budget.meter('app_1').retryAfter).toBe(1);
    wait(1_000);
    expect(budget.meter('app_1').retryAfter).toBeUndefined();
    await work('app_1', 99);
    expect(budget.meter('app_1').retryAfter).toBeUndefined();
  });

  it('gets the work of a forwarded request back, once, and never in a later window', async () => {
    const { budget, wait, work } = budgetOf();
    const first = await work('app_1', 150);
    expect(budget.meter('app_1').retryAfter).toBe(60);
    first.giveBack();
    first.giveBack();
    expect(budget.meter('app_1').retryAfter).toBeUndefined();
    const second = await work('app_1', 50);
    wait(60_000);
    await work('app_1', 100);
    second.giveBack();
    expect(budget.meter('app_1').retryAfter).toBe(60);
  });

  it('lets one request go on, however long its own work is', async () => {
    const { budget, wait } = budgetOf();
    const meter = budget.meter('app_1');
    for (let i = 0; i < 5; i++) await meter.run(() => wait(50));
    expect(meter.retryAfter).toBeUndefined();
    meter.end();
    expect(budget.meter('app_1').retryAfter).toBe(60);
  });

  it('does not refuse a request for work that is not decided yet: the first goes on, the others wait for it', async () => {
    const { budget, wait } = budgetOf();
    const [first, second] = [budget.meter('app_1'), budget.meter('app_1')];
    const done: string[] = [];
    await second.run(() => wait(10));
    await first.run(() => wait(120));
    const late = first.run(() => done.push('late'));
    await second.run(() => done.push('second'));
    await late;
    await second.run(() => wait(110));
    const waits = Promise.resolve(first.run(() => done.push('waited')));
    await new Promise((resolve) => setImmediate(resolve));
    expect(done).toEqual(['late', 'second']);
    second.giveBack();
    await waits;
    first.giveBack();
    expect(done).toEqual(['late', 'second', 'waited']);
    expect(budget.meter('app_1').retryAfter).toBeUndefined();
  });

  it('counts work that fails', async () => {
    const { budget, wait } = budgetOf();
    const failing = () => {
      wait(100);
      throw new Error('malformed');
    };
    const meter = budget.meter('app_1');
    expect(() => meter.run(failing)).toThrow('malformed');
    meter.end();
    expect(budget.meter('app_1').retryAfter).toBe(60);
  });

  it('works no longer per turn of the event loop if many applications send bodies, and lets them take turns', async () => {
    const { budget, wait } = budgetOf();
    const done: string[] = [];
    const run = (application: string) =>
      budget.meter(application).run(() => {
        done.push(application);
        wait(6);
      });
    const noisy = Array.from({ length: 5 }, (_, i) => `noisy_${i}`);
    // The first work of each does not wait.
    for (const application of noisy) expect(run(application)).toBeUndefined();
    const later = [...noisy, ...noisy].sort().map(run);
    expect(done).toEqual(noisy);
    const perTurn: number[] = [];
    while (done.length < 15) {
      const before = done.length;
      await new Promise((resolve) => setImmediate(resolve));
      perTurn.push(done.length - before);
    }
    await Promise.all(later);
    expect(Math.max(...perTurn)).toBeLessThanOrEqual(2);
    expect(done).toEqual([...noisy, ...noisy, ...noisy]);
  });

  it('lets other applications work first if one has used its part of a turn of the event loop', async () => {
    const { budget, wait } = budgetOf();
    const done: string[] = [];
    const run = (application: string) =>
      budget.meter(application).run(() => {
        done.push(application);
        wait(6);
      });
    const running = [run('greedy'), run('greedy'), run('greedy'), run('polite')];
    expect(running[0]).toBeUndefined();
    expect(running[3]).toBeUndefined();
    expect(done).toEqual(['greedy', 'polite']);
    const turns: string[][] = [];
    for (let i = 0; i < 3; i++) {
      await new Promise((resolve) => setImmediate(resolve));
      turns.push([...done]);
    }
    await Promise.all(running);
    expect(done).toEqual(['greedy', 'polite', 'greedy', 'greedy']);
    expect(turns[0]?.length).toBeLessThan(4);
  });
});
