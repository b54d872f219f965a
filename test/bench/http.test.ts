import { describe, expect, it } from 'vitest';

const { report } = await import(new URL('../../bench/topics/http.mjs', import.meta.url).href);

describe('the report of the topic http', () => {
  const rounds = (...micros: number[]) => micros.map((cpuMicros) => ({ cpuMicros, perSecond: 1 }));
  const figures = {
    'Nest on Express': {
      bare: rounds(100, 100),
      'empty interceptor': rounds(106, 106),
      headgate: rounds(120, 120),
      'headgate, as a guard': rounds(114, 114),
      '@nestjs/throttler': rounds(116, 116),
    },
  };
  const { targets, chart } = report({ rounds: 2, requests: 1, connections: 1, accounts: 1, figures });

  it('compares both places of headgate in Nest with the peer, and no place with an empty interceptor', () => {
    expect(targets.map(({ what, met }: { what: string; met: boolean }) => [what, met])).toEqual([
      ['Nest on Express: µs more than @nestjs/throttler', false],
      ['Nest on Express: headgate, as a guard: µs more than @nestjs/throttler', true],
    ]);
    const bars: { label: string; kind: string; value: number }[] = chart.panels[0].bars;
    expect(bars.map(({ kind, value }) => [kind, value])).toEqual([
      ['floor', 6],
      ['ours', 20],
      ['ours', 14],
      ['peer', 16],
    ]);
  });
});
