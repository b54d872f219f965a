/** The alerts and the dashboard: promtool takes them, every metric in them exists, and every alert is explained. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { checkRules, findPromtool, testRules } from 'headgate-testbed/promtool';
import { answer, startUpstream } from 'headgate-testbed/upstream';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { configOf } from '../support/gateway.ts';
import { startInProcess } from '../support/in-process.ts';

const ROOT = resolve(import.meta.dirname, '../../../..');
const ALERTS = join(ROOT, 'apps/gateway/docs/prometheus/alerts.yml');
const TESTS = join(import.meta.dirname, 'alerts.yml');
const read = (file: string): string => readFileSync(file, 'utf8');

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly summary: string; readonly runbook: string };
}
interface AlertTest {
  readonly alertname: string;
  readonly exp_alerts?: readonly unknown[];
}
interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[];
}

const rules: readonly Rule[] = parse(read(ALERTS)).groups.flatMap((group: { rules: Rule[] }) => group.rules);
const dashboard = JSON.parse(read(join(ROOT, 'apps/gateway/docs/grafana/headgate.json')));
const panels: readonly Panel[] = dashboard.panels;
const exprs = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
const variables: string[] = dashboard.templating.list.map(({ name }: { name: string }) => name);
/** Names of the metrics in an expression, without the part that a histogram adds to its name. */
const metricsIn = (text: string): string[] =>
  [...text.matchAll(/\b(?:headgate|nodejs|process)_\w+/g)].map(([name]) => name.replace(/_bucket$/, ''));

beforeAll(() => void findPromtool(), 300_000);

describe('the alerts', () => {
  it('are valid, and fire when they should, and only then', () => {
    expect(rules.length).toBeGreaterThan(10);
    expect(checkRules(ALERTS)).toEqual([]);
    expect(testRules(TESTS)).toEqual([]);
  });

  it('each has a test in which it fires, and one in which it does not', () => {
    const tests: readonly AlertTest[] = parse(read(TESTS)).tests.flatMap(
      (test: { alert_rule_test: AlertTest[] }) => test.alert_rule_test,
    );
    const names = (fires: boolean) =>
      new Set(tests.filter((test) => (test.exp_alerts !== undefined) === fires).map(({ alertname }) => alertname));
    expect([...names(true)].sort()).toEqual(rules.map(({ alert }) => alert).sort());
    expect([...names(false)].sort()).toEqual(rules.map(({ alert }) => alert).sort());
  });

  it('each has its section in the runbook', () => {
    const sections = [...read(join(ROOT, 'apps/gateway/docs/runbook.md')).matchAll(/^## (\w+)$/gm)].map(
      ([, name]) => name,
    );
    expect(sections).toEqual(rules.map(({ alert }) => alert));
    for (const { alert, annotations } of rules)
      expect(annotations.runbook).toBe(`apps/gateway/docs/runbook.md#${alert.toLowerCase()}`);
  });

  it('promtool finds an expression that is not valid, and a test that fails', () => {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-rules-'));
    const broken = join(folder, 'broken.yml');
    writeFileSync(broken, recordingRules(['sum(rate(headgate_x_total[5m])']));
    expect(checkRules(broken).join()).toContain('could not parse expression');
    const changed = join(folder, 'alerts.yml');
    writeFileSync(changed, read(ALERTS).replace('> 0.01', '> 0.5'));
    const test = join(folder, 'test.yml');
    writeFileSync(test, read(TESTS).replace(/^rule_files: .*$/m, `rule_files: [${changed}]`));
    expect(testRules(test).join()).toContain('HeadgateDegraded');
    rmSync(folder, { recursive: true });
  });
});

describe('the dashboard', () => {
  it('has only expressions that Prometheus can read', () => {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-rules-'));
    const file = join(folder, 'dashboard.yml');
    const concrete = exprs.map((expr) => expr.replaceAll('$__rate_interval', '5m').replace(/\$\w+/g, '.*'));
    expect(concrete.length).toBeGreaterThan(30);
    writeFileSync(file, recordingRules(concrete));
    expect(checkRules(file)).toEqual([]);
    rmSync(folder, { recursive: true });
  });

  it('uses its variables, in each panel its data source, and shows no panel over another', () => {
    expect(variables).toEqual(['datasource', 'instance', 'route']);
    const used = new Set(exprs.flatMap((expr) => [...expr.matchAll(/\$(\w+)/g)].map(([, name]) => name)));
    expect([...used].sort()).toEqual(['__rate_interval', 'instance', 'route']);
    for (const { targets = [] } of panels)
      for (const { datasource } of targets) expect(datasource.uid).toBe(`$${'{datasource}'}`);
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const places = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)} ${y + Math.floor(i / w)}`),
    );
    expect(new Set(places).size).toBe(places.length);
  });
});

it.each([
  ['alerts', rules.map(({ expr }) => expr)],
  ['dashboard', [...exprs, ...dashboard.templating.list.map(({ query }: { query: unknown }) => JSON.stringify(query))]],
])('every metric of the %s is in what a gateway with traffic serves', async (_, texts) => {
  const named = new Set(texts.flatMap(metricsIn));
  expect(named.size).toBeGreaterThan(5);
  const known = new Set(
    (await served()).flatMap((text) => [...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name)),
  );
  expect([...named].filter((name) => !known.has(name))).toEqual([]);
});

it('the files that the pages name are in the package', () => {
  const { files }: { files: string[] } = JSON.parse(read(join(ROOT, 'apps/gateway/package.json')));
  expect(files).toEqual(expect.arrayContaining(['docs/grafana/*', 'docs/prometheus/*']));
  expect(existsSync(ALERTS)).toBe(true);
});

let texts: Promise<string[]> | undefined;

/** What gateways with each store serve after some requests. */
function served(): Promise<string[]> {
  texts ??= Promise.all(
    ['memory', 'redis://127.0.0.1:1', 'postgres://user@127.0.0.1:1/none'].map(async (store) => {
      const upstream = await startUpstream();
      const gateway = await startInProcess(configOf(upstream.url, { store }));
      await gateway.ask('GET', '/api/v1/chats?account_id=acc_1');
      upstream.behave(answer({ status: 429 }));
      await gateway.ask('GET', '/api/v1/chats?account_id=acc_1');
      await upstream.close();
      return gateway.metrics();
    }),
  );
  return texts;
}

/** A file of Prometheus with one recording rule per expression. */
function recordingRules(expressions: readonly string[]): string {
  return JSON.stringify({
    groups: [{ name: 'checked', rules: expressions.map((expr, i) => ({ record: `checked:${i}`, expr })) }],
  });
}
