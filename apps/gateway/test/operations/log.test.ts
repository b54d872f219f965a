/** The log has the req_id and never a token. If its reader goes away, the gateway goes on. */
import fs, { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StoreFullError, StoreTimeoutError, StoreUnavailableError } from 'headgate';
import { eventually } from 'headgate-testbed/raw-http';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { createExchange, type Exchange } from '../../src/exchange/exchange.ts';
import { createLog, type Log, type LogSettings } from '../../src/operations/log.ts';

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

/** What `write` logs. */
async function linesOf(write: (log: Log) => void): Promise<Record<string, unknown>[]> {
  const fd = openSync(file, 'w');
  const log = createLog(fd);
  write(log);
  await log.close();
  return readFileSync(file, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

it('has one JSON line per request: the decision and the duration, but no headers, and of the path only the template', async () => {
  const fd = openSync(file, 'w');
  const log = createLog(fd);
  const whole = exchangeOf(true);
  whole.route = { name: 'POST /x/{id}', source: undefined, isPublic: false, idempotent: undefined };
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
    route: 'POST /x/{id}',
    path: '/x/{id}',
    status: 200,
    ms: expect.any(Number),
    decision: 'accepted',
    msg: 'request',
  });
  expect(lines[1]).toMatchObject({ route: null, path: null, decision: 'refused', status: 499, aborted: true });
  expect(lines[0].ms).toBeGreaterThanOrEqual(0);
  expect(JSON.stringify(lines)).not.toContain('secret');
  closeSync(fd);
});

describe('the settings', () => {
  /** The lines of a log with these settings, for requests of one application and account. */
  function linesWith(settings: Partial<LogSettings>, write: (log: Log, exchange: Exchange) => void) {
    return linesOf((log) => {
      log.configure({ level: 'info', application: false, account: false, ...settings });
      const exchange = exchangeOf(true);
      exchange.application = 'app_1';
      exchange.account = { id: 'acc_1', application: 'app_1', scope: null };
      write(log, exchange);
    });
  }

  it('name application and account only if they say so; null if the request has none', async () => {
    const write: Parameters<typeof linesWith>[1] = (log, exchange) => {
      log.request(exchange, 200);
      log.request(exchangeOf(true), 401);
    };
    const plain = await linesWith({}, write);
    expect(JSON.stringify(plain)).not.toMatch(/app_1|acc_1|"application"|"account"/);
    const both = await linesWith({ application: true, account: true }, write);
    expect(both).toMatchObject([
      { application: 'app_1', account: 'acc_1' },
      { application: null, account: null },
    ]);
    const [one] = await linesWith({ application: true }, write);
    expect(one).toMatchObject({ application: 'app_1' });
    expect(one).not.toHaveProperty('account');
  });

  it('can change while the process runs', async () => {
    const lines = await linesWith({}, (log, exchange) => {
      log.request(exchange, 200);
      log.configure({ level: 'warn', application: false, account: false });
      log.request(exchange, 201);
      log.configure({ level: 'info', application: true, account: false });
      log.request(exchange, 202);
    });
    expect(lines).toMatchObject([{ status: 200 }, { status: 202, application: 'app_1' }]);
  });

  it.each([
    ['debug', ['debug', 'info', 'warn', 'error', 'request']],
    ['info', ['info', 'warn', 'error', 'request']],
    ['warn', ['warn', 'error']],
    ['error', ['error']],
    ['silent', []],
  ] as const)('level %s writes %j', async (level, written) => {
    const lines = await linesWith({ level }, (log, exchange) => {
      for (const each of ['debug', 'info', 'warn', 'error'] as const) log.logger[each](each);
      log.request(exchange, 200);
    });
    expect(lines.map(({ msg }) => msg)).toEqual(written);
  });
});

it("a request is a warning if the gateway's own answer is a 5xx, and not if it is the upstream's", async () => {
  const lines = await linesOf((log) => {
    const own = exchangeOf(true);
    own.hasOwnAnswer = true;
    own.decision = 'accepted';
    own.upstreamCause = 'refused';
    log.request(own, 503);
    log.request(own, 429);
    log.request(exchangeOf(true), 503);
    own.decision = 'replayed';
    log.request(own, 500);
  });
  expect(lines.map(({ level, status }) => [level, status])).toEqual([
    [40, 503],
    [30, 429],
    [30, 503],
    [30, 500],
  ]);
  expect(lines[0]).toMatchObject({ cause: 'refused' });
  expect(lines[2]).not.toHaveProperty('cause');
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

it('a worker, whose pipe others write to as well, writes whole lines of at most 4,096 bytes together, with its number', async () => {
  const write = vi.spyOn(fs, 'write');
  const log = createLog(openSync(file, 'w'), { worker: 3 });
  for (let i = 0; i < 100; i += 1) log.request(exchangeOf(true), 200);
  await log.close();
  const texts = write.mock.calls.map(([, text]) => String(text));
  write.mockRestore();
  expect(texts.join('').split('\n')).toHaveLength(101);
  for (const text of texts) {
    expect(text.length).toBeLessThanOrEqual(4_096);
    expect(text.endsWith('\n')).toBe(true);
    for (const line of text.trimEnd().split('\n')) expect(JSON.parse(line)).toMatchObject({ worker: 3, status: 200 });
  }
  expect(texts.length).toBeLessThan(50);
});

it('lines that come while a slow reader delays a write are written as well, without a further line', async () => {
  const original = fs.write as (...args: unknown[]) => void;
  // The descriptor takes its first write after the time at which the lines behind it were due.
  const write = vi.spyOn(fs, 'write').mockImplementationOnce(((...args: unknown[]) => {
    setTimeout(() => original(...args), 50);
  }) as never);
  const log = createLog(openSync(file, 'w'), { worker: 3 });
  for (let i = 0; i < 25; i += 1) log.request(exchangeOf(true), 200);
  await eventually(() => readFileSync(file, 'utf8').split('\n').length === 26, 'all lines');
  write.mockRestore();
  await log.close();
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
