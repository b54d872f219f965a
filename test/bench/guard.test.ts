import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Decision } from '../../src/index.ts';

const bench = (file: string) => new URL(`../../bench/${file}.mjs`, import.meta.url);
const { GUARDED } = await import(bench('support/guard-workloads').href);
const { guardReport } = await import(bench('support/guard-report').href);
const { perfCount, valgrindCount } = await import(bench('support/instructions').href);

const SOURCES: Record<string, () => Promise<object>> = {
  index: () => import('../../src/index.ts'),
  memory: () => import('../../src/memory.ts'),
  redis: () => import('../../src/redis.ts'),
  'shared-limits': () => import('../../src/shared-limits/index.ts'),
  http: () => import('../../src/http/index.ts'),
  fetch: () => import('../../src/adapters/fetch.ts'),
};

function run(...args: string[]) {
  const { status, stderr } = spawnSync(process.execPath, [fileURLToPath(bench('guard')), ...args], {
    encoding: 'utf8',
  });
  return { status, stderr: stderr.trim() };
}

describe('bench:guard', () => {
  const rounds = (...costs: number[]) => costs.map((cost) => ({ cost }));
  const settings = { limit: 1.15, base: 'abc1234', rounds: 1, unit: 'CPU ns' };

  it('fails if the median ratio of the rounds is above the limit, and names the workload', () => {
    const figures = {
      same: { base: rounds(100, 100, 100), head: rounds(100, 190, 101) },
      slower: { base: rounds(100, 200, 300), head: rounds(116, 240, 351) },
    };
    const { text, isSlower } = guardReport({ figures, ...settings, rounds: 3 });
    expect(isSlower).toBe(true);
    expect(text).toContain('Above 1.15: slower.');
    expect(text).toMatch(/same .* 1\.01 \(1\.00–1\.90\) \| ✓/);
  });

  it('passes if the ratio is exactly the limit', () => {
    const figures = { even: { base: rounds(100), head: rounds(115) } };
    expect(guardReport({ figures, ...settings }).isSlower).toBe(false);
  });

  it('counts NaN as slower', () => {
    const { text, isSlower } = guardReport({ figures: { odd: { base: rounds(1), head: rounds(NaN) } }, ...settings });
    expect(isSlower).toBe(true);
    expect(text).toMatch(/odd .* ✗/);
    const figures = { even: { base: rounds(100), head: rounds(100) } };
    expect(guardReport({ figures, ...settings, limit: NaN }).isSlower).toBe(true);
  });

  it('always says what it did not measure', () => {
    for (const cost of [100, 200]) {
      const { text } = guardReport({ figures: { w: { base: rounds(100), head: rounds(cost) } }, ...settings });
      expect(text).toMatch(/Not measured: .*Redis server.*adapters.*expire/);
    }
  });

  it('reads the instruction counts of perf and valgrind, and undefined if perf has none', () => {
    expect(perfCount('123456,,instructions:u,5000,100.00,,\n')).toBe(123_456);
    expect(perfCount('<not supported>,,instructions:u,0,100.00,,\n')).toBeUndefined();
    expect(valgrindCount('==1== I   refs:      1,177,890,702\n')).toBe(1_177_890_702);
  });

  it.each(Object.keys(GUARDED))('has a workload that can be called repeatedly: %s', async (name) => {
    const call = await GUARDED[name]((module: string) => SOURCES[module]?.());
    for (let i = 0; i < 3; i++) expect(await call()).toBeTruthy();
  });

  it('has a workload in which the Redis store decides several records per call, none of them degraded', async () => {
    const name = Object.keys(GUARDED).find((each) => each.startsWith('Redis store')) ?? '';
    const decisions: Decision[] = await (await GUARDED[name]((module: string) => SOURCES[module]?.()))();
    expect(new Set(decisions.map(({ account }) => account)).size).toBe(decisions.length);
    for (const { accepted, degraded, trace } of decisions) {
      expect([accepted, degraded, trace.length]).toEqual([true, false, 4]);
    }
  });
});

describe('the command line of the guard', () => {
  it.each([
    ['--ratio', '1,15', 'a number above 0'],
    ['--ratio', '0', 'a number above 0'],
    ['--ratio', 'Infinity', 'a number above 0'],
    ['--rounds', '0', 'a whole number from 1'],
    ['--rounds', 'x', 'a whole number from 1'],
    ['--rounds', '1.5', 'a whole number from 1'],
  ])('rejects a wrong number before it does anything: %s %s', (option, text, wanted) => {
    expect(run(option, text)).toEqual({ status: 2, stderr: `${option}: must be ${wanted}, got "${text}"` });
  });

  it('rejects an unknown workload, and lists the known ones', () => {
    expect(run('--only', 'x')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('--only: unknown workload "x" (expected one of: consumeSync, accepted; '),
    });
  });
});
