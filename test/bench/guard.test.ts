import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Decision } from '../../src/index.ts';

const bench = (file: string) => new URL(`../../bench/${file}.mjs`, import.meta.url);
const { GUARDED } = await import(bench('support/guard-workloads').href);
const { guardReport } = await import(bench('support/guard-report').href);

const SOURCES: Record<string, () => Promise<object>> = {
  index: () => import('../../src/index.ts'),
  memory: () => import('../../src/stores/memory/index.ts'),
  redis: () => import('../../src/stores/redis/index.ts'),
  http: () => import('../../src/http/index.ts'),
  fetch: () => import('../../src/adapters/fetch.ts'),
};

function run(command: string, ...args: string[]) {
  const { status, stderr } = spawnSync(process.execPath, [fileURLToPath(bench(command)), ...args], {
    encoding: 'utf8',
  });
  return { status, stderr: stderr.trim() };
}

describe('the guard', () => {
  const rounds = (...costs: number[]) => costs.map((cost) => ({ cost }));
  const settings = { limit: 1.15, base: 'abc1234', rounds: 1, unit: 'CPU ns' };

  it('takes what is no number for slower', () => {
    const { text, isSlower } = guardReport({ figures: { odd: { base: rounds(1), head: rounds(NaN) } }, ...settings });
    expect(isSlower).toBe(true);
    expect(text).toMatch(/odd .* ✗/);
    const figures = { even: { base: rounds(100), head: rounds(100) } };
    expect(guardReport({ figures, ...settings, limit: NaN }).isSlower).toBe(true);
  });

  it('says what it did not look at, whatever it found', () => {
    for (const cost of [100, 200]) {
      const { text } = guardReport({ figures: { w: { base: rounds(100), head: rounds(cost) } }, ...settings });
      expect(text).toMatch(/Not looked at: .*Redis server.*adapters.*runs out/);
    }
  });

  it.each(Object.keys(GUARDED))('has a workload that works, call after call: %s', async (name) => {
    const call = await GUARDED[name]((module: string) => SOURCES[module]?.());
    for (let i = 0; i < 3; i++) expect(await call()).toBeTruthy();
  });

  it('lets the Redis store decide in calls of several records, none of them degraded', async () => {
    const name = Object.keys(GUARDED).find((each) => each.startsWith('Redis store')) ?? '';
    const decisions: Decision[] = await (await GUARDED[name]((module: string) => SOURCES[module]?.()))();
    expect(new Set(decisions.map(({ account }) => account)).size).toBe(decisions.length);
    for (const { accepted, degraded, trace } of decisions) {
      expect([accepted, degraded, trace.length]).toEqual([true, false, 4]);
    }
  });
});

describe('numbers on the command line', () => {
  it.each([
    ['guard', '--ratio', '1,15', 'a number above 0'],
    ['guard', '--ratio', '0', 'a number above 0'],
    ['guard', '--ratio', 'Infinity', 'a number above 0'],
    ['guard', '--rounds', '0', 'a whole number from 1 on'],
    ['guard', '--rounds', 'x', 'a whole number from 1 on'],
    ['guard', '--rounds', '1.5', 'a whole number from 1 on'],
    ['run', '--rounds', '0', 'a whole number from 1 on'],
    ['run', '--seconds', 'x', 'a number above 0'],
    ['run', '--seconds', '', 'a number above 0'],
  ])('are refused before anything is done: %s %s %s', (command, option, text, wanted) => {
    expect(run(command, option, text)).toEqual({ status: 2, stderr: `${option} ${text}: must be ${wanted}` });
  });

  it('are not the only thing that is: so is a name that nothing has', () => {
    expect(run('guard', '--only', 'x')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('--only x: there'),
    });
    expect(run('run', '--topic', 'x')).toMatchObject({ status: 2, stderr: expect.stringContaining('memory, bytes') });
  });
});
