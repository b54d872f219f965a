import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { createMemoryAdjustments } from '../../src/shared-limits/stores/memory.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createWrongClaimStore, FAULTS } from '../testing/wrong-claim-stores.ts';
import { readFlags } from './flags.ts';
import { countLines, noCounts, type Part, planParts } from './plan.ts';
import { historiesOn, LANES } from './subjects.ts';
import { type Job, replayCommand, runPart } from './worker.ts';

const PROGRAM = resolve(import.meta.dirname, '../../scripts/run-ts.mjs');

describe('npm run test:histories', () => {
  it('runs histories of each kind on each store, and counts them', async () => {
    const args = [PROGRAM, 'test/nightly/main.ts', '--histories', '60', '--seed', '7', '--workers', '1'];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    expect(stdout.split('\n')).toEqual([
      '60 random histories, seed 7',
      'memory: 30 histories (14 of limits, 13 of claims, 3 of adjustments)',
      'redis: 18 histories (8 of limits, 8 of claims, 2 of adjustments)',
      'cluster: 12 histories (5 of limits, 6 of claims, 1 of adjustments)',
      expect.stringMatching(/^60 of 60 histories in \d+ s$/),
      '',
    ]);
  });

  it.each([
    [['--store', 'disk'], '--store: unknown store "disk" (expected memory, redis, cluster)'],
    [['--histories', '0'], '--histories: expected a positive number, not "0"'],
    [['--seed', '1.5'], '--seed: expected an integer of 32 bits, not "1.5"'],
    [['--path', '1:2'], '--path needs --store, --kind and --seed, as the failure has printed them'],
  ])('rejects %j', (args, message) => {
    expect(readFlags(args)).toBe(message);
  });

  it('prints the shortest history that fails, and how to replay it', async () => {
    const run = historiesOn('wrong', {
      limits: (clock) => createMemoryStore({ clock }),
      claims: (clock) => createWrongClaimStore(clock, FAULTS.W_COMPLETE_OVERWRITES),
      adjustments: (clock) => createMemoryAdjustments({ clock }),
    });
    const part: Part = { store: 'memory', kind: 'claims', histories: 500, seed: 4 };
    const report = (await runPart({ run }, part)) as string;
    expect(report).toMatch(/Counterexample: .*"type":"complete"/);
    expect(report).toMatch(/Shrunk [1-9]\d* time/);
    const [, seed, path] = /^npm run test:histories -- --store memory --kind claims --seed (\d+) --path (\S+)$/.exec(
      replayCommand(part, report),
    ) as RegExpExecArray;
    const again = await runPart({ run }, { ...part, histories: 1, seed: Number(seed), path } as Job);
    expect(again).toContain(/Counterexample: .*/.exec(report)?.[0]);
    expect(await runPart({ run }, { ...part, kind: 'limits', histories: 20 })).toBeUndefined();
  });

  it('runs the histories of a part at the same time, each with a clock of its own', async () => {
    const clocks = new Set<object>();
    let [atOnce, most] = [0, 0];
    const run = historiesOn('slow', {
      limits: async (clock) => {
        clocks.add(clock);
        most = Math.max(most, ++atOnce);
        await new Promise((resolve) => setImmediate(resolve));
        atOnce--;
        return createMemoryStore({ clock });
      },
      claims: (clock) => createWrongClaimStore(clock, FAULTS.W_COMPLETE_OVERWRITES),
      adjustments: (clock) => createMemoryAdjustments({ clock }),
    });
    expect(await runPart({ run }, { store: 'memory', kind: 'limits', histories: 37, seed: 1 })).toBeUndefined();
    expect([clocks.size, most]).toEqual([37, LANES]);
  });

  it('gives a million histories to the stores and the kinds, each part with its own seed', () => {
    const parts = planParts({ histories: 1_000_000, seed: 2 ** 31 - 2 });
    const counts = noCounts();
    for (const { store, kind, histories } of parts) counts[store][kind] += histories;
    expect(countLines(counts)).toEqual([
      'memory: 500,000 histories (225,000 of limits, 225,000 of claims, 50,000 of adjustments)',
      'redis: 300,000 histories (135,000 of limits, 135,000 of claims, 30,000 of adjustments)',
      'cluster: 200,000 histories (90,000 of limits, 90,000 of claims, 20,000 of adjustments)',
    ]);
    // The lanes of a part have the seeds that follow.
    const seeds = parts.flatMap(({ seed }) => Array.from({ length: LANES }, (_, lane) => (seed + lane) | 0));
    expect(new Set(seeds).size).toBe(seeds.length);
    expect(parts.every(({ seed }) => seed === (seed | 0))).toBe(true);
    // Whenever the run ends, each store has had its share.
    const half = parts.slice(0, parts.length / 2).filter(({ store }) => store === 'cluster');
    expect(half.length / parts.filter(({ store }) => store === 'cluster').length).toBeCloseTo(0.5, 1);
  });
});
