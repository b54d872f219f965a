/** The log has the req_id and never a token. If its reader goes away, the gateway goes on. */
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { StoreFullError, StoreTimeoutError, StoreUnavailableError } from '../../../src/core/errors.ts';
import { createExchange } from '../../../src/gateway/exchange/exchange.ts';
import { createLog } from '../../../src/gateway/operations/log.ts';
import { eventually } from '../../support/raw-http.ts';

const folder = mkdtempSync(join(tmpdir(), 'headgate-log-'));
const file = join(folder, 'log.jsonl');
afterAll(() => rmSync(folder, { recursive: true }));

function exchangeOf(writableFinished: boolean) {
  const request = { method: 'POST', url: '/x?secret', headers: { 'x-api-key': 'secret' } };
  return createExchange(
    'id-1',
    request as never as IncomingMessage,
    { writableFinished } as never as ServerResponse,
    false,
  );
}

it('has one JSON line per request: the decision and the duration, but no path and no headers', async () => {
  const fd = openSync(file, 'w');
  const log = createLog(fd);
  const whole = exchangeOf(true);
  whole.route = { name: 'POST /x', source: undefined, idempotent: undefined };
  whole.decision = 'accepted';
  log.request(whole, 200);
  log.request(exchangeOf(false), 499);
  const lines = await eventually(() => {
    const found = readFileSync(file, 'utf8').trimEnd().split('\n');
    return found.length === 2 && found.map((line) => JSON.parse(line));
  }, 'two lines');
  expect(lines[0]).toEqual({
    level: 30,
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    req_id: 'id-1',
    method: 'POST',
    route: 'POST /x',
    status: 200,
    ms: expect.any(Number),
    decision: 'accepted',
    msg: 'request',
  });
  expect(lines[1]).toMatchObject({ route: null, decision: 'refused', status: 499, aborted: true });
  expect(lines[0].ms).toBeGreaterThanOrEqual(0);
  expect(JSON.stringify(lines)).not.toContain('secret');
  closeSync(fd);
});

it('an expected error is one short line without a stack; an unexpected one has its stack', async () => {
  const fd = openSync(file, 'w');
  const log = createLog(fd);
  const cause = new Error(`Connection is closed. ${'x'.repeat(2_000)}`);
  const expected = [new StoreFullError(100_000), new StoreTimeoutError(250), new StoreUnavailableError(cause)];
  const req_id = '01234567-89ab-cdef-0123-456789abcdef';
  for (const err of [...expected, new TypeError('a mistake', { cause })]) {
    log.logger.error({ req_id, stage: 'idempotency', err }, 'gate failure');
  }
  await log.close();
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  for (const line of lines.slice(0, 3)) expect(line.length).toBeLessThan(400);
  const [full, , unavailable, mistake] = lines.map((line) => JSON.parse(line).err);
  expect(full).toEqual({ type: 'StoreFullError', code: 'store_full', message: expected[0]?.message });
  expect(unavailable).toEqual({
    type: 'StoreUnavailableError',
    code: 'store_unavailable',
    message: expect.stringContaining('Connection is closed'),
  });
  expect(mistake).toMatchObject({ stack: expect.stringContaining('log.test.ts'), cause: { type: 'Error' } });
});

it('close writes buffered lines', async () => {
  const fd = openSync(file, 'w');
  const log = createLog(fd);
  for (let i = 0; i < 3; i += 1) log.logger.info({ i }, 'kept');
  await log.close();
  expect(readFileSync(file, 'utf8').match(/"kept"/g)).toHaveLength(3);
});

it('without a reader it drops its lines, and still ends', async () => {
  const fd = openSync(file, 'w');
  closeSync(fd);
  // No other file may be opened before the descriptor is used, because it would get the same number.
  const log = createLog(fd);
  log.logger.info('a line without a reader');
  log.logger.info('nor this');
  await log.close();
});
