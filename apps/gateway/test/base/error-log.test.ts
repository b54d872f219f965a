import { expect, it } from 'vitest';
import { createErrorLog } from '../../src/base/error-log.ts';

it('writes an outage once in full, then one short line per minute, and the next outage in full again', () => {
  let now = 0;
  const lines: [number, object][] = [];
  const report = createErrorLog(
    (fields) => void lines.push([now, fields]),
    () => now,
  );
  const refused = new Error('connect ECONNREFUSED');
  const late = new Error('no answer');
  // Two errors a second for two minutes. In the second minute, calls fail in another way too.
  for (; now < 120_000; now += 500) {
    report(refused);
    if (now === 90_500) report(late);
  }
  expect(lines).toEqual([
    [0, { err: refused }],
    [60_000, { cause: 'connect ECONNREFUSED', errors: 120 }],
    [90_500, { err: late }],
  ]);
  now += 10_000;
  report(refused);
  expect(lines.slice(3)).toEqual([[130_000, { err: refused }]]);
});

it('never writes more than a line per second, whatever the errors say', () => {
  let now = 0;
  let written = 0;
  const report = createErrorLog(
    () => void written++,
    () => now,
  );
  for (; now < 60_000; now += 10) report(new Error(`the request ${now} failed`));
  // Ten messages, and nothing more within the minute.
  expect(written).toBe(10);
});
