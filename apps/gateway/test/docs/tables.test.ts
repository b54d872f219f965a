import { filesIn, namesOf, read, rowsOf } from 'headgate-testbed/docs';
import { describe, expect, it } from 'vitest';
import { parseConfig } from '../../src/config/config.ts';
import { OBEYED_FIELDS } from '../../src/config/request-fields.ts';
import { warningsFor } from '../../src/config/warnings.ts';
import { createMetrics } from '../../src/operations/metrics.ts';
import { poolMetrics } from '../../src/workers/primary.ts';
import { startInProcess } from '../support/in-process.ts';

describe('tables of the pages', () => {
  it('keys of the config', () => {
    const { properties } = JSON.parse(read('apps/gateway/docs/config.schema.json'));
    const keys = namesOf(rowsOf('apps/gateway/docs/config.md', 'key'));
    expect(['$schema', ...keys].sort()).toEqual(Object.keys(properties).sort());
    const page = 'docs/idempotency.md';
    const settings = [...rowsOf(page, 'setting'), ...rowsOf(page, 'key of the config only')];
    expect(namesOf(settings).sort()).toEqual(Object.keys(properties.idempotency.properties).sort());
  });

  it('fields that are not forwarded', () => {
    const rows = rowsOf('apps/gateway/docs/config.md', 'what an upstream may take from it');
    const named = rows.flatMap(([what = '', fields = '']) =>
      /^any|^another field/.test(what) ? [] : [...fields.matchAll(/`([^`]+)`/g)].map(([, name]) => name as string),
    );
    expect(named.sort()).toEqual([...OBEYED_FIELDS].sort());
  });

  it('metrics of the process, with their types', async () => {
    // A server that is down is only a warning: its metrics are there all the same.
    const processes = await Promise.all([
      startInProcess({ store: 'memory' }),
      startInProcess({ store: 'redis://127.0.0.1:1', leases: true }),
      startInProcess({ store: 'postgres://user@127.0.0.1:1/none' }),
    ]);
    const texts = await Promise.all(processes.map((process) => process.metrics()));
    await Promise.all(processes.map((process) => process.stop()));
    const primary = createMetrics(poolMetrics({ listening: 0, unexpectedEnds: 0 }));
    texts.push((await primary.render()).text);
    const served = texts.flatMap((text) =>
      [...text.matchAll(/^# TYPE (headgate_\w+) (\w+)$/gm)].map(([, name, type]) => `${name} ${type}`),
    );
    const listed = [...read('apps/gateway/docs/metrics.md').matchAll(/^\| `(headgate_\w+)` \| (\w+) \|/gm)];
    expect(listed.map(([, name, type]) => `${name} ${type}`).sort()).toEqual([...new Set(served)].sort());
  });
});

it.each(['README.md', 'docs/gateway.md'])('the configs of %s are valid, without a warning', (page) => {
  const blocks = [...read(`apps/gateway/${page}`).matchAll(/^```json\n(.*?)\n```$/gms)].map(([, text = '']) => text);
  expect(blocks.length).toBeGreaterThan(0);
  for (const text of blocks) {
    const warnings = warningsFor(parseConfig(text, page));
    expect(warnings.filter(({ path }) => path !== 'store')).toEqual([]);
  }
});

it("every line of the gateway's log is on its page", () => {
  const page = read('apps/gateway/docs/operations.md');
  const calls = filesIn('apps/gateway/src', '.ts').flatMap(
    (file) => read(file).match(/\blogger(\.\w+|\[.*\])\(.*/g) ?? [],
  );
  // The text is the last argument.
  const texts = calls.flatMap(
    (call) => call.slice(call.lastIndexOf('}') + 1).match(/(?<=')[^',:?]+(: [^']+)?(?=')/g) ?? [],
  );
  expect(texts).toEqual(expect.arrayContaining(['redis error', 'gate failure', 'config unchanged', 'upstream failed']));
  expect(texts.filter((text) => /\w/.test(text) && !page.includes(`\`${text}\``))).toEqual([]);
});
