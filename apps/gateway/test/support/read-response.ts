import { request } from 'node:http';
import { Duplex } from 'node:stream';
import { ResponseReader } from '../../src/proxy/response-reader.ts';

/** A response as a reader understood it. */
export interface SeenResponse {
  readonly status: number;
  readonly fields: readonly string[];
  readonly body: string;
}

/** Bytes that an upstream sends in two pieces, and then closes the connection. */
export interface SentResponse {
  readonly bytes: Buffer;
  /** Length of the first piece. */
  readonly at: number;
  readonly isHead: boolean;
}

/** A response, and where its bytes end. */
export interface ReadResponse {
  readonly seen: SeenResponse;
  /** The bytes up to the end of the response. */
  readonly end: number;
}

/** Undefined if the gateway's reader rejects the bytes, or waits for more of them at their end. */
export function readByUs({ bytes, at, isHead }: SentResponse): ReadResponse | undefined {
  const seen = seenIn([bytes.subarray(0, at), bytes.subarray(at)], isHead);
  if (seen === undefined) return undefined;
  const { hasMore, ...response } = seen;
  return { seen: response, end: hasMore ? endOf(bytes, isHead) : bytes.length };
}

function seenIn(pieces: readonly Buffer[], isHead: boolean): (SeenResponse & { hasMore: boolean }) | undefined {
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
    for (const piece of pieces) reader.read(piece);
    return reader.end() && head !== undefined ? { ...head, body, hasMore: reader.hasMore } : undefined;
  } catch {
    return undefined;
  }
}

/** The length of the first response. More bytes follow it. */
function endOf(bytes: Buffer, isHead: boolean): number {
  const reader = new ResponseReader(isHead, { onHead() {}, onData() {} });
  let end = 0;
  for (; !reader.isOver; end += 1) reader.read(bytes.subarray(end, end + 1));
  return end;
}

/** The same by Node's client, whose parser is llhttp; undefined if it reports an error, or that the response is not whole. */
export function readByNode({ bytes, at, isHead }: SentResponse): Promise<SeenResponse | undefined> {
  return new Promise((resolve) => {
    const connection = new Duplex({
      read() {},
      write(_chunk, _encoding, done) {
        done();
        this.push(bytes.subarray(0, at));
        this.push(bytes.subarray(at));
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
