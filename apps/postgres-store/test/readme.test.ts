import { readFileSync } from 'node:fs';
import { afterAll, expect, inject, test, vi } from 'vitest';
import { newPool } from './support/pool.ts';

const EXAMPLE = '../examples/readme.ts';
const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');
const readme = read('../README.md');

afterAll(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

test('the example of the README runs and prints the output on the page', async () => {
  const [, code, printed] = /^```ts\n(.*?)^```\n\n```text\n(.*?)^```/ms.exec(readme) ?? [];
  expect(code).toBe(read(EXAMPLE));
  const pool = newPool(inject('postgresStore').url);
  await pool.query('create database example');
  vi.stubEnv('DATABASE_URL', inject('postgresStore').url.replace(/postgres$/, 'example'));
  const log = vi.spyOn(console, 'log').mockImplementation(() => undefined);
  await import(EXAMPLE);
  expect(log.mock.calls.map(([line]) => `${line}\n`).join('')).toBe(printed);
});
