import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import type { TraceFigures } from 'headgate-simulate';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { runCli } from '../../src/cli/cli.ts';
import { policyOf, progress, readLimits } from '../../src/cli/trace-flags.ts';

const folder = mkdtempSync(join(tmpdir(), 'headgate-simulate-'));
afterAll(() => rmSync(folder, { recursive: true }));

async function run(...args: string[]) {
  const printed = { out: '', error: '' };
  const code = await runCli(args, {
    out: (text) => {
      printed.out += text;
    },
    error: (text) => {
      printed.error += text;
    },
    isInteractive: true,
  });
  return { code, ...printed };
}

function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

/** Secrets, certificates and Redis are not there. */
const config = (name: string, allMethods: string[], account = 'query.account_id'): string =>
  file(
    name,
    JSON.stringify({
      store: { env: 'NOT_SET' },
      workers: 2,
      listen: { tls: { cert: 'no.pem', key: 'no.pem' } },
      keys: [{ token: { env: 'NOT_SET' }, application: 'a' }],
      accounts: [{ id: 'acc_1', application: 'a', provider: 'p' }],
      routes: [{ route: 'GET /chats', account }],
      limits: { default: { allMethods } },
    }),
  );
const line = (second: number): string =>
  `1.1.1.1 - - [01/Jan/2026:00:00:0${second} +0000] "GET /chats?account_id=acc_1 HTTP/1.1" 200 1\n`;
const LOG = [0, 1, 2, 3].map(line).join('');
const now = config('now.json', ['9/1m']);
const next = config('new.json', ['3/1m']);
const log = file('access.log.gz', gzipSync(LOG));

it('knows the plans of keys and applications, without their secrets', async () => {
  const keys = [{ name: 'one', token: { env: 'NOT_SET' }, application: 'a', plan: 'pro' }];
  const routes = ['key', 'application', 'none'].map((account) => ({ route: `GET /${account}`, account }));
  const plans = { pro: { allMethods: ['9/1m'] } };
  const text = JSON.stringify({ keys, routes, limits: { default: { allMethods: ['1/1m'] }, plans } });
  const { account } = policyOf(await readLimits(file('keys.json', text)));
  expect(['key:one', 'application:a', 'key:two'].map((id) => account?.(id)?.plan)).toEqual(['pro', 'pro', undefined]);
});

describe('headgate simulate', () => {
  it('prints a report, and writes it as a page', async () => {
    const html = join(folder, 'report.html');
    const { code, out, error } = await run(
      'simulate',
      '--config',
      now,
      '--candidate',
      next,
      '--trace',
      log,
      '--html',
      html,
    );
    expect({ code, error }).toEqual({ code: 0, error: '' });
    expect(out).toContain('4 lines (format combined), 4 requests\nSpan: 2026-01-01 00:00:00Z to 2026-01-01 00:00:03Z');
    expect(out).toMatch(/^current accepts {2}3 +1 newly rejected$/m);
    expect(out).toMatch(/^newly rejected +25 %$/m);
    expect(out).toMatch(/^acc_1 +1 +0 +0 +2026-01-01 00:00:03Z +57s$/m);
    expect(out).toMatch(/^p +4 +1 /m);
    expect(readFileSync(html, 'utf8')).toContain('<strong>25 %</strong> of the requests are newly rejected.');
  });

  it.each([
    ['25%', 0],
    ['0.25', 0],
    ['24.9%', 3],
    ['0', 3],
  ])('--max-newly-rejected %s exits with %i', async (most, wanted) => {
    const args = ['--config', now, '--candidate', next, '--trace', log, '--max-newly-rejected', most, '--json'];
    const { code, out, error } = await run('simulate', ...args);
    expect({ code, error }).toEqual({
      code: wanted,
      error: wanted === 0 ? '' : `headgate: 25 % are newly rejected, more than ${Number.parseFloat(most)} %\n`,
    });
    expect(JSON.parse(out)).toMatchObject({ matrix: { none: 3, onlyCandidate: 1 }, newlyRejected: 0.25 });
  });

  it('--trace - reads standard input, compressed or not', async () => {
    const stdin = vi.spyOn(process, 'stdin', 'get');
    onTestFinished(() => stdin.mockRestore());
    for (const bytes of [Buffer.from(LOG), gzipSync(LOG)]) {
      // In pieces of 7 bytes, as a slow pipe may have them.
      const pieces = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, i) => bytes.subarray(7 * i, 7 * i + 7));
      stdin.mockReturnValue(Readable.from(pieces) as never);
      const { code, out } = await run('simulate', '--config', now, '--candidate', next, '--trace', '-', '--json');
      expect(code).toBe(0);
      expect(JSON.parse(out)).toMatchObject({ trace: { lines: 4 }, matrix: { none: 3, onlyCandidate: 1 } });
    }
  });

  it('a candidate that is the current config rejects nothing newly', async () => {
    const args = ['--config', next, '--candidate', next, '--trace', log, '--max-newly-rejected', '0', '--json'];
    const { code, out } = await run('simulate', ...args);
    expect(code).toBe(0);
    expect(JSON.parse(out).matrix).toEqual({ none: 3, both: 1, onlyCurrent: 0, onlyCandidate: 0 });
  });

  it('a log without a request does not pass a check', async () => {
    for (const content of ['noise\n', '']) {
      const empty = file('empty.log', content);
      const args = ['simulate', '--config', now, '--candidate', next, '--trace', empty];
      expect(await run(...args)).toMatchObject({ code: 0, error: expect.stringContaining('has no request') });
      expect((await run(...args, '--max-newly-rejected', '100%')).code).toBe(3);
    }
  });

  const body = config('body.json', ['9/1m'], 'body.account_id');
  it.each([
    [2, ['--trace', log], 'simulate needs --config FILE'],
    [2, ['--config', now], 'simulate needs --trace FILE, or --trace - for standard input'],
    [2, ['--config', join(folder, 'no'), '--trace', log], 'the file does not exist'],
    [1, ['--config', now, '--trace', join(folder, 'no')], 'the file does not exist'],
    [1, ['--config', now, '--trace', folder], 'it is a folder'],
    [2, ['--config', now, '--trace', log, '--max-newly-rejected', '1%'], '--max-newly-rejected needs --candidate FILE'],
    [
      2,
      ['--config', now, '--candidate', next, '--trace', log, '--max-newly-rejected', 'x'],
      'must be a part such as 0.1%',
    ],
    [2, ['--config', now, '--trace', log, '--format', 'xml'], 'format: must be auto'],
    [2, ['--config', now, '--trace', log, '--sort', '5'], '--sort: a duration is a whole number'],
    [2, ['--config', now, '--trace', log, '--map', 'at'], '--map must have fields such as'],
    [2, ['--config', now, '--trace', log, '--colour'], "simulate: Unknown option '--colour'"],
    [2, ['--config', body, '--trace', log], 'routes[0].account: is not in an access log'],
    [2, ['--config', config('bad.json', ['9/1x']), '--trace', log], 'limits.default.allMethods[0]'],
    [1, ['--config', now, '--trace', log, '--html', folder], `--html ${folder}: EISDIR`],
    [1, ['--config', now, '--trace', file('cut.gz', gzipSync(LOG).subarray(0, 40))], 'trace: it is not whole'],
  ])('exits with %i: %j', async (code, args, message) => {
    const found = await run('simulate', ...args);
    expect(found.code).toBe(code);
    expect(found.error).toContain(message);
    expect(found.out).toBe('');
  });
});

it.each([
  [40_000_000, true, '\r\u001b[Kheadgate: 25 %, 1,000 lines\r\u001b[K'],
  [undefined, true, '\r\u001b[Kheadgate: 1,000 lines\r\u001b[K'],
  [40_000_000, false, ''],
  [19_999_999, true, ''],
])('shows how much of a log of %s bytes was read, on a terminal (%s): %j', (size, isInteractive, wanted) => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  let shown = '';
  const error = (text: string): void => {
    shown += text;
  };
  const { onProgress, end } = progress({ out: error, error, isInteractive }, size);
  const counted = { lines: 1_000, requests: 0, skipped: {}, late: 0, inexact: 0, changes: 0, size: 10_000_000 };
  const figures: TraceFigures = { ...counted, format: undefined };
  onProgress(figures);
  vi.advanceTimersByTime(500);
  onProgress(figures);
  onProgress(figures);
  end();
  expect(shown).toBe(wanted);
});

describe('headgate recommend', () => {
  it('prints the smallest limits, and limits for a config that then reject no more', async () => {
    const args = ['--config', now, '--trace', log, '--windows', '2s,1d', '--keep', '75%'];
    const { code, out, error } = await run('recommend', ...args);
    expect({ code, error }).toEqual({ code: 0, error: '' });
    expect(out).toMatch(/^GET \/chats +4 +1 +2\/2s +0 %$/m);
    expect(out).toMatch(/^GET \/chats +4 +1 +5\/1d +0 %$/m);
    expect(out).toContain('shows the demand that they allow');
    const { limits } = JSON.parse((await run('recommend', ...args, '--json')).out);
    expect(limits).toEqual({ default: { routes: { 'GET /chats': ['2/2s', '5/1d'] } } });
    const byAccounts = JSON.parse((await run('recommend', ...args, '--by', 'accounts', '--json')).out);
    expect(byAccounts.by).toBe('accounts');
  });

  it.each([
    [['--config', now, '--trace', log], 'recommend needs --windows'],
    [['--config', now, '--trace', log, '--windows', '1x'], 'windows[0]: a duration is'],
    [['--config', now, '--trace', log, '--windows', '1m', '--keep', '2'], '--keep must be a part'],
    [['--config', now, '--trace', log, '--windows', '1m', '--by', 'x'], 'by: must be requests or accounts'],
  ])('exits with 2: %j', async (args, message) => {
    expect(await run('recommend', ...args)).toMatchObject({ code: 2, error: expect.stringContaining(message) });
  });
});
