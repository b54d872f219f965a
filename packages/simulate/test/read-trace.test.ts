import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { readTrace, reportHtml, reportText, simulate, type TraceEvent } from '../src/index.ts';
import type { TraceSource } from '../src/lines.ts';
import type { ReadTraceOptions } from '../src/read-trace.ts';

const START = Date.UTC(2026, 0, 1);
const LIMITED = { limits: { allMethods: ['1/1m'] } };

async function read(source: TraceSource, options?: ReadTraceOptions) {
  const trace = readTrace(source, options);
  const events: TraceEvent[] = [];
  for await (const batch of trace) events.push(...batch);
  return { events, figures: trace.figures };
}

const logged = (rest: object): string =>
  `${JSON.stringify({ level: 30, time: '2026-01-01T00:00:00.000Z', req_id: 'r', route: 'GET /x', account: 'a', cost: 1, at: START, order: 1, decision: 'accepted', ...rest, msg: 'request' })}\n`;

describe('the log of the gateway', () => {
  it('counts each line that is not a request that limits decided about, by its reason', async () => {
    const text = [
      '{"level":30,"time":"2026-01-01T00:00:00.000Z","msg":"listening"}\n',
      logged({}),
      logged({ decision: 'replayed' }),
      logged({ decision: 'refused' }),
      logged({ decision: 'preflight' }),
      logged({ decision: 'unlimited' }),
      logged({ decision: 'degraded' }),
      logged({ decision: 'rejected', degraded: true }),
      logged({ decision: 'rejected', blocked: true }),
      logged({ account: null }),
      logged({ at: null }),
      '{"level":30,"time":"2026-01-01T00:00:00.000Z","revision":"1.2","msg":"limits adjusted"}\n',
      'Error: no JSON\n',
      '    at stack\n\n\r\n',
    ].join('');
    const { figures, events } = await read(text);
    expect(figures).toMatchObject({
      lines: 14,
      requests: 1,
      changes: 1,
      format: 'headgate',
      skipped: { other: 3, replayed: 1, refused: 2, no_account: 2, degraded: 2, blocked: 1, unreadable: 2 },
    });
    expect(events).toMatchObject([{ at: START, account: 'a', route: 'GET /x', cost: 1, logged: 'accepted' }]);
  });

  it('without the moment of the decision takes the end less the duration, and says so', async () => {
    const { figures, events } = await read(logged({ at: undefined, order: undefined, ms: 250 }));
    expect(events).toMatchObject([{ at: START - 250 }]);
    expect(figures.inexact).toBe(1);
  });

  it('joins a refund with its request, whichever line comes first', async () => {
    const refund = `${JSON.stringify({ level: 30, req_id: 'r', cost: 0, at: START + 5, order: 2, msg: 'refund' })}\n`;
    const next = logged({ req_id: 's', at: START + 6, order: 3 });
    for (const text of [refund + logged({}) + next, logged({}) + next + refund]) {
      const report = await simulate({ current: LIMITED, trace: readTrace(text) });
      expect(report).toMatchObject({ matrix: { none: 2, both: 0 }, lostSettlements: 0 });
    }
  });
});

it('sorts lines within 10 s, and counts what comes later', async () => {
  const at = (seconds: number, order: number): string => logged({ at: START + seconds * 1_000, order });
  const { events, figures } = await read([
    at(20, 4),
    at(11, 2),
    at(11, 1),
    at(12, 3),
    at(25, 6),
    at(19, 5),
    at(60, 7),
    at(1, 8),
  ]);
  expect(events.map((event) => (event.at - START) / 1_000)).toEqual([11, 11, 12, 19, 20, 25, 1, 60]);
  expect(figures.late).toBe(1);
});

describe('access logs', () => {
  const combined = (request: string, rest = ''): string =>
    `9.9.9.9 - - [01/Jan/2026:00:00:00 +0000] "${request}" 200 1${rest}\n`;

  it('take the account from path, query, address or user', async () => {
    const line = '9.9.9.9 - joe [01/Jan/2026:00:00:00 +0000] "GET /a/acc%201/x?b=1&id=x%2By HTTP/1.1" 200 1\n';
    const accountOf = async (account: string) => {
      const { events } = await read(line, { routes: ['GET /a/{id}/x'], account });
      return (events[0] as { account?: string } | undefined)?.account;
    };
    expect(await Promise.all(['path.id', 'query.id', 'remote_addr', 'remote_user', 'query.no'].map(accountOf))).toEqual(
      ['acc 1', 'x+y', '9.9.9.9', 'joe', undefined],
    );
  });

  it('keep their order while the clock of a time zone is put back', async () => {
    // 02:59:59 in summer, one second before 02:00:00 in winter.
    const times = ['25/Oct/2026:02:59:59 +0200', '25/Oct/2026:02:00:00 +0100', '25/Oct/2026:02:59:59 +0100'];
    const lines = times.map((time) => `9.9.9.9 - - [${time}] "GET /x HTTP/1.1" 200 1\n`);
    const { events, figures } = await read(lines, { routes: ['GET /x'], account: 'remote_addr' });
    const first = Date.UTC(2026, 9, 25, 0, 59, 59);
    expect(events.map(({ at }) => at - first)).toEqual([0, 1_000, 3_600_000]);
    expect(figures.late).toBe(0);
  });

  it('count what matches no route, has no account, or is no HTTP', async () => {
    const text = [
      combined('GET /x?id=1 HTTP/1.1'),
      combined('HEAD /x?id=1 HTTP/1.1'),
      combined('GET /y HTTP/1.1'),
      combined('GET /%zz HTTP/1.1'),
      combined('GET /x HTTP/1.1'),
      combined('\\x16\\x03\\x01'),
      combined('-'),
      'noise\n',
    ].join('');
    const { figures } = await read(text, { routes: [{ route: 'GET /x', account: 'query.id' }] });
    expect(figures).toMatchObject({ requests: 2, skipped: { no_route: 2, no_account: 1, unreadable: 3 } });
  });

  it.each(['body.account_id', 'header.x-account'])('say what to do if the account is in %s', async (account) => {
    const options = { format: 'combined', routes: [{ route: 'GET /x', account }] } as const;
    expect(() => readTrace('', options)).toThrow(
      new RegExp(`^routes\\[0\\]\\.account: is not in an access log: use the log of the gateway .*got "${account}"`),
    );
    // For the log of the gateway it is no fault.
    expect((await read(logged({}), { routes: options.routes })).figures.requests).toBe(1);
    await expect(read(combined('GET /x HTTP/1.1'), { routes: options.routes })).rejects.toThrow('not in an access log');
  });

  it.each([
    [{ format: 'xml' }, 'format: must be auto'],
    [{ format: 'json', map: { time: 'x' } }, 'map.time: unknown option'],
    [{ format: 'combined', routes: ['x'] }, 'routes[0]: must be a method and a path'],
    [
      { format: 'combined', routes: ['GET /x'], account: 'field.x' },
      'account: must be path.NAME, query.NAME, remote_addr',
    ],
    [{ sortMs: -1 }, 'sortMs'],
  ])('%j is refused with its place', (options, message) => {
    expect(() => readTrace('', options as never)).toThrow(message);
  });

  it.each([
    ['seconds', START / 1_000],
    ['milliseconds', START],
    ['ISO 8601', '2026-01-01T01:00:00+01:00'],
    ['the combined format', '01/Jan/2026:00:00:00 +0000'],
    ['seconds as text', `${START / 1_000}.000`],
  ])('JSON lines have times as %s', async (_form, time) => {
    const line = JSON.stringify({ time, request: 'GET /x?q=1 HTTP/1.1', who: 7, n: 2 });
    const options = {
      format: 'json',
      routes: ['GET /x'],
      account: 'field.who',
      map: { request: 'request', cost: 'n' },
    } as const;
    expect((await read(line, options)).events).toMatchObject([{ at: START, account: '7', route: 'GET /x', cost: 2 }]);
  });
});

describe('hostile logs', () => {
  it.each([
    ['CRLF', (text: string) => text.replaceAll('\n', '\r\n')],
    ['a byte order mark', (text: string) => `\ufeff${text}`],
    ['empty lines', (text: string) => text.replaceAll('\n', '\n\n\r\n')],
    ['no line feed at its end', (text: string) => text.trimEnd()],
  ])('a log with %s is the same log, in pieces of any length', async (_name, change) => {
    const accounts = ['a"b', "a'b", 'é', '日本', '\u{1f600}', 'a\\"'];
    const text = accounts.map((account, order) => logged({ account, order })).join('');
    const wanted = await read(text);
    expect(wanted.events.map((event) => 'account' in event && event.account)).toEqual(accounts);
    const changed = change(text);
    const bytes = new TextEncoder().encode(changed);
    for (const length of [1, 2, 3, 64, 10_000]) {
      const cut = (source: string | Uint8Array) =>
        Array.from({ length: Math.ceil(source.length / length) }, (_, i) => source.slice(i * length, (i + 1) * length));
      for (const source of [cut(bytes), cut(changed), cut(gzipSync(bytes))])
        expect((await read(source)).events).toEqual(wanted.events);
    }
  });

  it('a source may use its buffer again', async () => {
    const bytes = new TextEncoder().encode(logged({}) + logged({ account: 'b', order: 2 }));
    function* reused() {
      const buffer = Buffer.alloc(100);
      for (let at = 0; at < bytes.length; at += buffer.length) {
        const part = bytes.subarray(at, at + buffer.length);
        buffer.set(part);
        yield buffer.subarray(0, part.length);
      }
    }
    expect((await read(reused())).events).toMatchObject([{ account: 'a' }, { account: 'b' }]);
  });

  it('100 MB of noise are skipped and counted', async () => {
    const noise = new TextEncoder().encode(`${'\u0000<b>{"msg":'.repeat(20)}\n{"level":30,"msg":[\n[]\n"x"\n\xff\n`);
    noise[5] = 0xff;
    const perPiece = 2_000;
    const piece = new Uint8Array(noise.length * perPiece);
    for (let i = 0; i < perPiece; i++) piece.set(noise, i * noise.length);
    const pieces = Math.ceil(100_000_000 / piece.length);
    async function* source() {
      for (let i = 0; i < pieces; i++) yield piece;
      yield new TextEncoder().encode(logged({}));
    }
    const { figures } = await read(source());
    expect(figures.size).toBeGreaterThan(10_000_000);
    expect(figures).toMatchObject({ requests: 1, skipped: { unreadable: pieces * perPiece * 5 } });
  });

  it('a line without an end takes no memory', async () => {
    const piece = 'x'.repeat(60_000);
    const { figures } = await read([piece, piece, piece, '\n', logged({}), piece, piece]);
    expect(figures).toMatchObject({ lines: 3, requests: 1, skipped: { too_long: 2 } });
  });

  it('gzip that breaks off, or is none, is an error that says so', async () => {
    const packed = gzipSync(logged({}).repeat(1_000));
    for (const source of [
      packed.subarray(0, packed.length - 9),
      Buffer.concat([packed.subarray(0, 10), Buffer.alloc(90, 7)]),
    ])
      await expect(read(source)).rejects.toMatchObject({
        code: 'unreadable_trace',
        message: 'trace: it is not whole: gzip says so',
      });
    await expect(read([5] as never)).rejects.toThrow('its pieces must be strings or Uint8Arrays');
  });

  it('names reach neither a terminal nor a page as anything but text', async () => {
    const account = '</td><script>alert(1)</script><img src=x onerror="a">\u001b[31m\u009b\u202e\n\u0000"\'&';
    const route = 'GET /<style>*{display:none}</style>';
    const text = logged({ account, route }) + logged({ account, route, order: 2 });
    const candidate = { limits: { allMethods: ['1/2m'] } };
    const report = await simulate({ current: { limits: { allMethods: ['5/1m'] } }, candidate, trace: readTrace(text) });
    expect(report.matrix).toMatchObject({ none: 1, onlyCandidate: 1 });
    expect(reportText(report)).toMatch(/^[\x20-\x7e\n…]*$/);
    const page = reportHtml(report, '<script>title');
    expect(page).not.toMatch(/<script|<img|onerror="|(?!\n)\p{Cc}|\p{Cf}/u);
    expect(page.match(/<style>/g)).toHaveLength(1);
    expect(page).toContain('&lt;/td&gt;&lt;script&gt;alert(1)');
  });
});
