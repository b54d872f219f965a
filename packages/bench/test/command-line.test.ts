import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const COMMAND = fileURLToPath(new URL('../src/run.mjs', import.meta.url));

function run(...args: string[]) {
  const { status, stderr } = spawnSync(process.execPath, [COMMAND, ...args], { encoding: 'utf8' });
  return { status, stderr: stderr.trim() };
}

describe('the command line of the benchmarks', () => {
  it.each([
    ['--rounds', '0', 'a whole number from 1'],
    ['--seconds', 'x', 'a number above 0'],
    ['--seconds', '', 'a number above 0'],
  ])('rejects a wrong number before it does anything: %s %s', (option, text, wanted) => {
    expect(run(option, text)).toEqual({ status: 2, stderr: `${option}: must be ${wanted}, got "${text}"` });
  });

  it('rejects an unknown house or topic, and a topic of another house, and lists the known ones', () => {
    expect(run('memory')).toEqual({
      status: 2,
      stderr: 'unknown house "memory" (expected library, gateway, service; a topic is given as --topic NAME)',
    });
    expect(run('--topic', 'x')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('--topic: unknown topic "x" (expected memory, bytes'),
    });
    expect(run('gateway', '--topic', 'memory')).toEqual({
      status: 2,
      stderr: '--topic: unknown topic "memory" (expected gateway, doors, scale-out, fairness)',
    });
  });
});
