import { pino } from 'pino';
import { afterEach, expect, test, vi } from 'vitest';
import { Retention } from '../../src/journal/retention.ts';

const HOUR_MS = 3_600_000;
const log = pino({ level: 'silent' });

afterEach(() => {
  vi.useRealTimers();
});

test('a minute after the start and then every hour, in batches, until it is closed', async () => {
  vi.useFakeTimers();
  const limits: number[] = [];
  const rows = [500, 500, 3];
  const erase = async (limit: number): Promise<number> => {
    limits.push(limit);
    return rows.shift() ?? 0;
  };
  const retention = new Retention([{ what: 'rows', erase }], log);
  retention.start();
  await vi.advanceTimersByTimeAsync(59_999);
  expect(limits).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(limits).toEqual([500, 500, 500]);
  await vi.advanceTimersByTimeAsync(HOUR_MS);
  expect(limits).toHaveLength(4);
  await retention.close();
  await vi.advanceTimersByTimeAsync(3 * HOUR_MS);
  expect(limits).toHaveLength(4);
});

test('a failure is logged, and keeps nothing else from being erased', async () => {
  const logged: object[] = [];
  const noting = pino({}, { write: (line) => void logged.push(JSON.parse(line) as object) });
  const fail = async (): Promise<number> => {
    throw new Error('The database is away.');
  };
  const all = [
    { what: 'sends', erase: fail },
    { what: 'links', erase: async () => 7 },
  ];
  await new Retention(all, noting).run();
  expect(logged).toMatchObject([
    { what: 'sends', err: { message: 'The database is away.' } },
    { what: 'links', rows: 7 },
  ]);
});
