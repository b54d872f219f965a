import { describe, expect, it } from 'vitest';

const load = (file: string) => import(new URL(`../../bench/${file}.mjs`, import.meta.url).href);
const { ALONE, BESIDE, ELSEWHERE, fairnessReport } = await load('support/fairness-report');
const { createResponseReader } = await load('support/response-reader');
const { refusedBodies } = await load('support/fairness-bodies');

const ATTACK = 'uploads that stop';
const phase = (p99Ms: number, failedShare: number, peakMib: number) => ({
  ...{
    p99Ms,
    workP99Ms: 10 * (p99Ms - 3),
    failedShare,
    peakMib,
    idleMib: 100,
    upstreamConnections: 8,
    attacker: { 503: 3, 200: 1 },
  },
});
const resultOf = (beside: object) => ({
  ...{ rounds: 1, seconds: 1, linkMbit: 100, otherWork: 0.1, provenance: { commit: 'abc1234' } },
  figures: { [ATTACK]: { [ALONE]: [phase(2, 0, 110)], [ELSEWHERE]: [phase(4, 0, 300)], [BESIDE]: [beside] } },
});

describe('the topic fairness', () => {
  it('judges the polite tenant beside an attack by the same attack elsewhere, by its errors and by the memory', () => {
    const verdicts = (beside: object): boolean[] =>
      fairnessReport(resultOf(beside), resultOf(beside)).targets.map(({ met }: { met: boolean }) => met);
    expect(verdicts(phase(8, 0, 200))).toEqual([true, true, true, true]);
    expect(verdicts(phase(9, 0.01, 400))).toEqual([false, false, false, false]);
  });

  it('shows the figures from before the bounds beside those of now', () => {
    const { markdown, chart } = fairnessReport(resultOf(phase(8, 0, 200)), resultOf(phase(80, 0.5, 400)));
    expect(markdown).toMatch(
      /uploads that stop +\| +2\.0 \| +4\.0 \| +8\.0 \| +2\.00 \(2\.00–2\.00\) \| +-10 → 50 \| +0 % \| +100 \|/,
    );
    expect(markdown).toMatch(
      /uploads that stop +\| +2\.0 \| +4\.0 \| +80\.0 \|.+\| +50 % \| +300 \| +8 \| +200: 25 %, 503: 75 %/,
    );
    expect(chart.panels[0].bars.map(({ value }: { value: number }) => value)).toEqual([2, 4, 8, 80]);
  });

  it('reads responses in whatever pieces they come, and skips their bodies', () => {
    const text = 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello';
    const bytes = Buffer.from(`${text}HTTP/1.1 429 No\r\nX-A: b\r\n\r\n${text}`);
    for (let size = 1; size <= bytes.length; size++) {
      const statuses: number[] = [];
      const read = createResponseReader((status: number) => statuses.push(status));
      for (let at = 0; at < bytes.length; at += size) read(bytes.subarray(at, at + size));
      expect(statuses).toEqual([200, 429, 200]);
    }
  });

  it('refuses bodies of about 1 MB that are JSON without the account', () => {
    for (const body of refusedBodies()) {
      expect(body.length).toBeGreaterThan(1_000_000);
      expect(body.length).toBeLessThan(1_010_000);
      expect(JSON.parse(body.toString())).not.toHaveProperty('account_id');
    }
  });
});
