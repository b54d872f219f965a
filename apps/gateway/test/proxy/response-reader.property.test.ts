/** What the reader of responses accepts, Node's own parser reads in the same way. */
import { request } from 'node:http';
import { Duplex } from 'node:stream';
import { assert, asyncProperty, constantFrom, integer, nat, oneof, string, tuple } from 'fast-check';
import { expect, it } from 'vitest';
import { ResponseReader } from '../../src/proxy/response-reader.ts';

interface Seen {
  readonly status: number;
  readonly fields: readonly string[];
  readonly body: string;
}

/** Undefined if the reader refuses the bytes, or waits for more of them at their end. */
function readByUs(bytes: Buffer, at: number, isHead: boolean): Seen | undefined {
  let head: { status: number; fields: readonly string[] } | undefined;
  let body = '';
  const reader = new ResponseReader(isHead, {
    onHead: ({ status, fields }) => {
      head = { status, fields };
    },
    onData: (chunk) => {
      body += chunk.toString('latin1');
    },
  });
  try {
    for (const piece of [bytes.subarray(0, at), bytes.subarray(at)]) reader.read(piece);
    return reader.end() && !reader.hasMore && head !== undefined ? { ...head, body } : undefined;
  } catch {
    return undefined;
  }
}

/** The same by Node's client; undefined if it reports an error, or that the response is not whole. */
function readByNode(bytes: Buffer, isHead: boolean): Promise<Seen | undefined> {
  return new Promise((resolve) => {
    const connection = new Duplex({
      read() {},
      write(_chunk, _encoding, done) {
        done();
        this.push(bytes);
        this.push(null);
      },
    });
    const outgoing = request({ method: isHead ? 'HEAD' : 'GET', createConnection: () => connection });
    outgoing.on('error', () => resolve(undefined));
    outgoing.on('response', (response) => {
      let body = '';
      response.setEncoding('latin1').on('data', (text: string) => {
        body += text;
      });
      response.on('error', () => resolve(undefined));
      response.on('close', () => {
        const { statusCode: status = 0, rawHeaders: fields, complete } = response;
        resolve(complete ? { status, fields, body } : undefined);
      });
    });
    outgoing.end();
  });
}

const line = oneof(
  constantFrom(
    'Content-Length: 3',
    'Content-Length: 0',
    'content-length:3',
    'Content-Length: 03',
    'Content-Length: 3, 3',
    'Content-Length : 3',
    'Transfer-Encoding: chunked',
    'transfer-encoding: Chunked',
    'Transfer-Encoding: gzip, chunked',
    'Transfer-Encoding: identity',
    'Connection: close',
    'Connection: keep-alive',
    'X-A: 1',
    'X-A:',
    'X-A: \t 1 2 \t',
    ' folded',
    'X-B: \xe9',
    'X-C: \x01',
    'no colon',
  ),
  tuple(string({ maxLength: 4 }), string({ maxLength: 6 })).map(([name, value]) => `${name}: ${value}`),
);
const body = oneof(
  constantFrom('abc', '', 'ab', '3\r\nabc\r\n0\r\n\r\n', '3;x=y\r\nabc\r\n0\r\nx: 1\r\n\r\n', '03\r\nabc\r\n0\r\n\r\n'),
  constantFrom(
    '3 \r\nabc\r\n0\r\n\r\n',
    '0x3\r\nabc\r\n0\r\n\r\n',
    '3\nabc\n0\n\n',
    '0\r\n\r\n',
    '0\r\n',
    '-1\r\n\r\n',
  ),
);
const start = constantFrom(
  'HTTP/1.1 200 OK',
  'HTTP/1.1 204 No Content',
  'HTTP/1.1 304 Not Modified',
  'HTTP/1.0 200 OK',
  'HTTP/1.1 200',
  'HTTP/1.1 200 ',
  'HTTP/1.1  200 OK',
  'HTTP/1.1 2000 OK',
  'HTTP/2.0 200 OK',
  'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK',
);
const text = tuple(
  start,
  tuple(line, line, line, integer({ min: 0, max: 3 })),
  constantFrom('\r\n', '\r\n', '\r\n', '\n'),
  body,
).map(
  ([first, [a, b, c, count], end, rest]) => `${[first, ...[a, b, c].slice(0, count)].join(end)}${end}${end}${rest}`,
);

it('what the reader accepts, Node reads as the same response', async () => {
  await assert(
    asyncProperty(text, nat(), constantFrom(false, false, true), async (response, at, isHead) => {
      const bytes = Buffer.from(response, 'latin1');
      const seen = readByUs(bytes, at % (bytes.length + 1), isHead);
      if (seen !== undefined) expect(await readByNode(bytes, isHead)).toEqual(seen);
    }),
    { numRuns: 3_000 },
  );
});

it('both read an ordinary response', async () => {
  const bytes = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 3\r\nx-a: 1\r\n\r\nabc');
  const seen = { status: 200, fields: ['Content-Length', '3', 'x-a', '1'], body: 'abc' };
  expect(readByUs(bytes, 5, false)).toEqual(seen);
  expect(await readByNode(bytes, false)).toEqual(seen);
});
