import type { SentResponse } from './read-response.ts';

const OK = 'HTTP/1.1 200 OK\r\n';
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
/** Responses of every kind, valid or nearly. */
const RESPONSES = [
  `${OK}Content-Length: 3\r\n\r\nabc`,
  `${OK}Date: Sat, 28 Nov 2026 10:00:00 GMT\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 12\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5, max=100\r\n\r\nhello, world`,
  `${OK}Content-Length: 0\r\nSet-Cookie: a=b; Path=/\r\nSet-Cookie: c="d, e"\r\n\r\n`,
  `${OK}Connection: close\r\n\r\nto the end`,
  `${CHUNKED}3\r\nabc\r\n0\r\n\r\n`,
  `${CHUNKED}a;name=value\r\n0123456789\r\n1;q="x;y"\r\nz\r\n000\r\n\r\n`,
  `${CHUNKED}2\r\nab\r\n0\r\nX-Trailer: 1\r\nX-Other: \xe9\r\n\r\n`,
  'HTTP/1.1 204 No Content\r\nX-A:\r\nx-b: \t 1 \t\r\n\r\n',
  'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\nContent-Length: 5\r\n\r\n',
  'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 500 Internal Server Error\r\nContent-Length: 1\r\n\r\nx',
  'HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<p>old</p>',
  'HTTP/1.0 404 Not Found\r\nConnection: keep-alive\r\nContent-Length: 4\r\n\r\ngone',
  `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n1\r\na\r\n0\r\n\r\n`,
  `${OK}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`,
  `${OK}Upgrade: x\r\nConnection: upgrade\r\nContent-Length: 2\r\n\r\nhi`,
  // Two responses: whoever asked once gets the first.
  `${OK}Content-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb`,
];

/** Texts on which readers of HTTP have disagreed. */
const TOKENS = [
  ...['\r', '\n', '\r\n', '\n\n', '\r\n\r\n', '\r\r\n', '\0', ' ', '\t', '\v', '\f', '\x7f', '\x80', '\xa0', '\xff'],
  ...[':', ';', ',', '=', '"', '\\', '+', '-', '0', '1', '00', '0x', 'f', 'F', 'ffffffffffffffff', '4294967296', '9'],
  ...['Content-Length: 1\r\n', 'Content-Length: 3\r\n', 'Content-Length:\r\n', 'Content-Length : 2\r\n'],
  ...['Transfer-Encoding: chunked\r\n', 'Transfer-Encoding: identity\r\n', 'transfer-encoding:\tchunked\r\n'],
  ...[
    'Connection: close\r\n',
    'Connection: upgrade\r\n',
    ' folded\r\n',
    '\tfolded\r\n',
    'HTTP/1.1 200 OK\r\n',
    'HTTP/',
    '1.0',
  ],
  ...[
    'chunked',
    'Chunked',
    ', chunked',
    'identity',
    '200',
    '204',
    '304',
    '101',
    '099',
    '1xx',
    '0\r\n\r\n',
    ';a=b',
    '\u00df',
  ],
];

/** The mutated response of a seed, always the same. */
export function mutatedResponse(seed: number): SentResponse {
  const next = randomOf(seed);
  const below = (count: number): number => Math.floor(next() * count);
  const oneOf = <T>(list: readonly T[]): T => list[below(list.length)] as T;
  let text = oneOf(RESPONSES);
  for (let left = 1 + below(4); left > 0; left -= 1) {
    const from = below(text.length + 1);
    const to = Math.min(text.length, from + below(12));
    const [before, cut, after] = [text.slice(0, from), text.slice(from, to), text.slice(to)];
    switch (below(7)) {
      case 0:
        text = `${before}${oneOf(TOKENS)}${text.slice(from)}`;
        break;
      case 1:
        text = `${before}${oneOf(TOKENS)}${after}`;
        break;
      case 2:
        text = before + after;
        break;
      case 3:
        text = before + cut + cut + after;
        break;
      case 4:
        text = `${before}${String.fromCharCode(below(256))}${text.slice(from + 1)}`;
        break;
      case 5: {
        const other = oneOf(RESPONSES);
        text = before + other.slice(below(other.length));
        break;
      }
      default:
        text = withSwappedLines(text, below);
    }
  }
  const bytes = Buffer.from(text, 'latin1');
  return { bytes, at: below(bytes.length + 1), isHead: below(8) === 0 };
}

function withSwappedLines(text: string, below: (count: number) => number): string {
  const lines = text.split('\r\n');
  const [a, b] = [below(lines.length), below(lines.length)];
  [lines[a], lines[b]] = [lines[b] as string, lines[a] as string];
  return lines.join('\r\n');
}

/** Numbers from 0 to 1 (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
