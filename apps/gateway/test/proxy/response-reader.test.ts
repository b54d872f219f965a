/** Where a response of the upstream ends, and what is no response. Each is read whole, and byte by byte. */
import { describe, expect, it } from 'vitest';
import { type ResponseHead, ResponseReader, UnreadableResponse } from '../../src/proxy/response-reader.ts';

interface Read {
  readonly heads: ResponseHead[];
  readonly body: string;
  readonly isOver: boolean;
  readonly hasMore: boolean;
  readonly keepsAlive: boolean;
}

function readIn(pieces: readonly Buffer[], { isHead = false, end = false } = {}): Read {
  const heads: ResponseHead[] = [];
  let body = '';
  const reader = new ResponseReader(isHead, {
    onHead: (head) => void heads.push(head),
    onData: (chunk) => {
      body += chunk.toString('latin1');
    },
  });
  for (const piece of pieces) reader.read(piece);
  if (end) reader.end();
  const { isOver, hasMore, keepsAlive } = reader;
  return { heads, body, isOver, hasMore, keepsAlive };
}

/** The same, whatever the pieces are. */
function read(text: string, options: { isHead?: boolean; end?: boolean } = {}): Read {
  const bytes = Buffer.from(text, 'latin1');
  const whole = readIn([bytes], options);
  const pieces = [...bytes].map((byte) => Buffer.from([byte]));
  expect(readIn(pieces, options)).toEqual(whole);
  return whole;
}

const OK = 'HTTP/1.1 200 OK\r\n';

describe('a response is over', () => {
  it.each([
    ['after its length', `${OK}Content-Length: 3\r\n\r\nabc`, 'abc'],
    ['at once with a length of 0', `${OK}Content-Length: 0\r\n\r\n`, ''],
    ['after the last chunk', `${OK}Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n`, 'abc'],
    [
      'after chunks with extensions',
      `${OK}Transfer-Encoding: chunked\r\n\r\n1;x;y=z;q="a \\" b"\r\na\r\n0;x\r\n\r\n`,
      'a',
    ],
    ['after trailers', `${OK}transfer-encoding: Chunked\r\n\r\n1\r\na\r\n0\r\nx: 1\r\ny: 2\r\n\r\n`, 'a'],
    ['after the head of a 204', 'HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n', ''],
    ['after the head of a 304', 'HTTP/1.1 304\r\n\r\n', ''],
    ['after the head of a 304 with a length of 0', 'HTTP/1.1 304\r\nContent-Length: 0\r\n\r\n', ''],
    ['behind informational ones', `HTTP/1.1 103 Hints\r\nlink: x\r\n\r\n${OK}Content-Length: 1\r\n\r\na`, 'a'],
  ])('%s', (_title, text, body) => {
    expect(read(text)).toMatchObject({ body, isOver: true, hasMore: false, keepsAlive: true });
    expect(read(text).heads).toHaveLength(1);
    expect(read(`${text}H`)).toMatchObject({ body, isOver: true, hasMore: true });
    expect(readIn([Buffer.from(text.slice(0, -1))]).isOver).toBe(false);
  });

  it.each([
    ['the request was a HEAD', `${OK}Content-Length: 5\r\n\r\n`, true],
    ['a 204 has a length', 'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n', false],
    ['a 204 has a coding', 'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n', false],
    ['a 304 has a length', 'HTTP/1.1 304\r\nContent-Length: 5\r\n\r\n', false],
    ['a 304 has a coding', 'HTTP/1.1 304\r\nTransfer-Encoding: chunked\r\n\r\n', false],
  ])('after the head, if %s, and its connection closes: a body could follow', (_title, text, isHead) => {
    expect(read(text, { isHead })).toMatchObject({ isOver: true, hasMore: false, keepsAlive: false });
  });

  it('at the end of the connection, if nothing else says where', () => {
    const text = Buffer.from(`${OK}\r\nabc`);
    expect(readIn([text])).toMatchObject({ body: 'abc', isOver: false });
    expect(readIn([text], { end: true })).toMatchObject({ body: 'abc', isOver: true, keepsAlive: false });
    expect(readIn([Buffer.from(`${OK}Content-Length: 9\r\n\r\nabc`)], { end: true }).isOver).toBe(false);
  });
});

describe('the head', () => {
  it('has its fields in order, without blanks around values, and bytes as Latin-1', () => {
    const text = `HTTP/1.1 418 I'm a \xe9\r\nA:1\r\nb: \t x y \t\r\nA:\r\nc: \xe9\xa0\r\nContent-Length:0\r\n\r\n`;
    expect(read(text).heads).toEqual([
      {
        status: 418,
        reason: "I'm a \xe9",
        fields: ['A', '1', 'b', 'x y', 'A', '', 'c', '\xe9\xa0', 'Content-Length', '0'],
      },
    ]);
  });

  it.each([
    ['HTTP/1.1', '', true],
    ['HTTP/1.1', 'Connection: Close\r\n', false],
    ['HTTP/1.1', 'Connection: x\r\nconnection: y, close\r\n', false],
    ['HTTP/1.0', '', false],
    ['HTTP/1.0', 'Connection: keep-alive\r\n', true],
    ['HTTP/1.0', 'Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n', false],
  ])('%s with %j: the connection stays open: %s', (version, fields, keepsAlive) => {
    const length = fields.includes('Transfer') ? '' : 'Content-Length: 0\r\n';
    expect(read(`${version} 200 OK\r\n${length}${fields}\r\n`).keepsAlive).toBe(keepsAlive);
  });
});

describe('unreadable is', () => {
  const chunked = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
  it.each([
    ['no HTTP', 'SSH-2.0-x\r\n\r\n'],
    ['HTTP/2', 'HTTP/2.0 200 OK\r\n\r\n'],
    ['HTTP/0.9', 'HTTP/0.9 200 OK\r\n\r\n'],
    ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
    ['a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n'],
    ['a status below 100', 'HTTP/1.1 099 OK\r\n\r\n'],
    ['another protocol', 'HTTP/1.1 101 Switching\r\n\r\n'],
    ['a blank in front of the status line', ` ${OK}\r\n`],
    ['a field without a colon', `${OK}abc\r\n\r\n`],
    ['a field without a name', `${OK}: x\r\n\r\n`],
    ['a blank in front of the colon', `${OK}Content-Length : 1\r\n\r\n`],
    ['a line that begins with a blank', `${OK} x: 1\r\n\r\n`],
    ['a value that goes on in the next line', `${OK}a: 1\r\n 2\r\n\r\n`],
    ['a bare line feed', `${OK}a: 1\nContent-Length: 0\r\n\r\n`],
    ['a bare carriage return', `${OK}a: 1\rContent-Length: 0\r\n\r\n`],
    ['a control character', `${OK}a: \0\r\n\r\n`],
    ['the character DEL', `${OK}a: \x7f\r\n\r\n`],
    ['a tab behind the length', `${OK}Content-Length: 3\t\r\n\r\n`],
    ['a tab behind chunked', `${OK}Transfer-Encoding: chunked\t \r\n\r\n`],
    ['an informational response with a malformed length', 'HTTP/1.1 103 Hints\r\nContent-Length: x\r\n\r\n'],
    ['an informational response that ends the connection', 'HTTP/1.1 103 Hints\r\nConnection: close\r\n\r\n'],
    ['an informational response of HTTP/1.0', 'HTTP/1.0 103 Hints\r\n\r\n'],
    ['two lengths', `${OK}Content-Length: 1\r\nContent-Length: 1\r\n\r\n`],
    ['a list of lengths', `${OK}Content-Length: 1, 1\r\n\r\n`],
    ['a length with a sign', `${OK}Content-Length: +1\r\n\r\n`],
    ['an empty length', `${OK}Content-Length:\r\n\r\n`],
    ['a length that no number has', `${OK}Content-Length: 99999999999999999999\r\n\r\n`],
    ['a length beside chunks', `${OK}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`],
    ['another coding', `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n`],
    ['chunked twice', `${OK}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n`],
    ['an empty coding', `${OK}Transfer-Encoding:\r\n\r\n`],
    ['a head of more than 16 KiB', `${OK}a: ${'x'.repeat(17_000)}\r\n\r\n`],
    ['a head without an end', `${OK}a: ${'x'.repeat(17_000)}`],
    ['a head with bare line feeds only', 'HTTP/1.1 200 OK\nContent-Length: 0\n\n'],
    ['a head that ends with a bare line feed', `${OK}Content-Length: 0\r\n\n`],
    ['a head that is informational and ends with bare line feeds', 'HTTP/1.1 103 Hints\n\n'],
    ['a greeting of another protocol', 'SSH-2.0-x\r\n'],
    ['a frame of HTTP/2', '\0\0\x06\x04\0\0\0\0\0'],
    ['a line feed in front of the head', '\n'],
    ['trailers with bare line feeds', `${chunked}0\r\nx: 1\n\n`],
    ['trailers that end with a bare line feed', `${chunked}0\r\n\n`],
    ['no size of a chunk', `${chunked}\r\nab`],
    ['a size that is no number', `${chunked}0x2\r\nab\r\n`],
    ['a negative size', `${chunked}-1\r\nab\r\n`],
    ['a size behind a blank', `${chunked} 2\r\nab\r\n`],
    ['a huge size', `${chunked}${'f'.repeat(16)}\r\nab\r\n`],
    ['a size that ends with a bare line feed', `${chunked}2\nab\r\n`],
    ['a chunk that is longer than its size', `${chunked}1\r\nab\r\n`],
    ['a chunk that ends with a bare line feed', `${chunked}1\r\na\n1\r\n`],
    ['a long extension', `${chunked}1;${'x'.repeat(2_000)}\r\na`],
    ['extensions of more than 16 KiB', `${chunked}${`1;${'x'.repeat(1_000)}\r\na\r\n`.repeat(17)}`],
    ['an extension without a name', `${chunked}1;=y\r\na`],
    ['an extension whose quotes do not end', `${chunked}1;x="y\r\na`],
    ['a trailer without a colon', `${chunked}0\r\nx\r\n\r\n`],
    ['a trailer that says a length', `${chunked}0\r\nContent-Length: 1\r\n\r\n`],
    ['a trailer that says a coding', `${chunked}0\r\nx: 1\r\nTransfer-Encoding: chunked\r\n\r\n`],
    ['trailers of more than 16 KiB', `${chunked}0\r\n${'a: b\r\n'.repeat(4_000)}\r\n`],
  ])('%s', (_title, text) => {
    const bytes = Buffer.from(text, 'latin1');
    expect(() => readIn([bytes])).toThrow(UnreadableResponse);
    expect(() => readIn([...bytes].map((byte) => Buffer.from([byte])))).toThrow(UnreadableResponse);
  });
});
