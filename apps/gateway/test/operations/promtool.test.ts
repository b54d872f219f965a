/** Prometheus's own check of names, units, help and types has no finding about headgate's metrics. */
import { readFileSync } from 'node:fs';
import { checkMetrics, findPromtool, ownMetrics } from 'headgate-testbed/promtool';
import { answer, startUpstream } from 'headgate-testbed/upstream';
import { beforeAll, expect, it } from 'vitest';
import { configOf } from '../support/gateway.ts';
import { startInProcess } from '../support/in-process.ts';

// Its installation may take some time.
beforeAll(() => void findPromtool(), 300_000);

it.each(['memory', 'redis://127.0.0.1:1', 'postgres://user@127.0.0.1:1/none'])(
  'what a gateway with the store %s serves',
  async (store) => {
    const upstream = await startUpstream();
    const gateway = await startInProcess(
      configOf(upstream.url, { store, limits: { default: { allMethods: ['1/1m'] } } }),
    );
    for (let i = 0; i < 2; i += 1) await gateway.ask('GET', '/api/v1/chats?account_id=acc_1');
    upstream.behave(answer({ status: 429 }));
    await gateway.ask('GET', '/api/v1/open');
    await upstream.close();
    await gateway.ask('GET', '/api/v1/chats?account_id=acc_2');
    const text = ownMetrics(await gateway.metrics());
    for (const name of ['requests_total', 'upstream_seconds_count', 'upstream_errors_total', 'connections']) {
      expect(text).toMatch(new RegExp(`^headgate_${name}[{ ]`, 'm'));
    }
    expect(checkMetrics(text)).toEqual([]);
  },
);

it('every metric of apps/gateway/docs/metrics.md, also if a gateway has not counted anything for it yet', () => {
  const page = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| `(headgate_\w+)` \| (\w+) \| .*? \| (.*) \|$/gm)];
  expect(rows.length).toBeGreaterThan(40);
  const samples = (name: string, type: string): string =>
    type === 'histogram' ? `${name}_bucket{le="+Inf"} 0\n${name}_sum 0\n${name}_count 0` : `${name} 0`;
  const text = rows.map(([, name = '', type = '', help]) => {
    return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${samples(name, type)}\n`;
  });
  expect(checkMetrics(text.join(''))).toEqual([]);
});

it('finds a gauge that is called a total, and a metric without help', () => {
  const text = '# HELP headgate_x_total x\n# TYPE headgate_x_total gauge\nheadgate_x_total 1\nheadgate_y 1\n';
  expect(checkMetrics(text)).toEqual([
    expect.stringMatching(/^headgate_x_total .*_total/),
    expect.stringMatching(/^headgate_y .*help/),
  ]);
});
