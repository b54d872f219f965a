import { describe, expect, it } from 'vitest';
import { doorNames, doorVersions } from '../../bench/support/doors-candidates.mjs';
import { doorsReport } from '../../bench/support/doors-report.mjs';

const figure = (headgateMicros: number, proxyMicros: number) => ({
  headgateMicros,
  proxyMicros,
  perSecond: 1_000,
  p50Micros: 1_000,
  p99Micros: 2_500,
});

describe('the topic doors', () => {
  it('adds the CPU of headgate to the CPU of the proxy, beside the proxy without a limit', () => {
    const { markdown, targets } = doorsReport({
      provenance: { versions: { nginx: '1.22.1' } },
      rounds: 2,
      seconds: 1,
      otherWork: 0.5,
      figures: {
        decisions: {
          'headgate as the proxy': [figure(40, 0), figure(50, 0)],
          'nginx, no limit': [figure(0, 10), figure(0, 20)],
          'nginx, auth_request': [figure(20, 30), figure(30, 30)],
        },
      },
    });
    expect(targets).toEqual([]);
    expect(markdown).toContain('Not installed, so not measured: caddy.');
    const row = markdown.split('\n').find((line: string) => line.includes('auth_request')) as string;
    expect(row.split('|').map((cell: string) => cell.trim())).toEqual([
      ...['', 'nginx, auth_request', '25.0 (20.0–30.0)', '30.0 (30.0–30.0)', '4.00 (3.00–5.00)'],
      ...['1,000', '1.0', '2.5', ''],
    ]);
  });

  it('measures only the doors of programs that are installed', () => {
    expect(doorNames({})).toEqual(['headgate as the proxy', 'POST /v1/decisions', "Envoy's rate limit service"]);
    expect(doorNames({ caddy: '2' })).toContain('Caddy, forward auth');
    for (const version of Object.values(doorVersions())) expect(version).toMatch(/^\d|^unknown$/);
  });
});
