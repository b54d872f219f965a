import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/** One request and its answer, as they were on the wire. */
export interface Exchange {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly requestHeaders: IncomingMessage['headers'];
  readonly requestBody: Buffer;
  readonly status: number;
  /** By names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
}

/** Calls back after each answer of a server. The server behaves as without it. */
export function watchExchanges(server: Server, onExchange: (exchange: Exchange) => void): void {
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const sent = collectChunks(request);
    const received = collectAnswer(response);
    response.once('finish', () =>
      onExchange({
        method: request.method ?? '',
        url: request.url ?? '',
        requestHeaders: request.headers,
        requestBody: Buffer.concat(sent),
        status: response.statusCode,
        headers: headersOf(response),
        body: Buffer.concat(received),
      }),
    );
  });
}

/** The HTTP parser pushes each chunk of a body. A listener for data would read the body before the service does. */
function collectChunks(request: IncomingMessage): Buffer[] {
  const chunks: Buffer[] = [];
  const push = request.push.bind(request);
  request.push = (chunk: Buffer | null, ...rest) => {
    if (chunk !== null) chunks.push(Buffer.from(chunk));
    return push(chunk, ...rest);
  };
  return chunks;
}

function collectAnswer(response: ServerResponse): Buffer[] {
  const chunks: Buffer[] = [];
  for (const name of ['write', 'end'] as const) {
    const original = response[name].bind(response) as (...args: unknown[]) => never;
    response[name] = (...args: unknown[]): never => {
      const [chunk, encoding] = args;
      if (typeof chunk === 'string')
        chunks.push(Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8'));
      else if (chunk instanceof Uint8Array) chunks.push(Buffer.from(chunk));
      return original(...args);
    };
  }
  return chunks;
}

/** The head that was sent: `getHeaders` does not return the fields that were passed to `writeHead`. */
function headersOf(response: ServerResponse): ReadonlyMap<string, string> {
  const { _header: head } = response as unknown as { readonly _header: string };
  const lines = head.split('\r\n').slice(1);
  return new Map(
    lines.flatMap((line) => {
      const [name = '', ...value] = line.split(': ');
      return name === '' ? [] : [[name.toLowerCase(), value.join(': ')] as const];
    }),
  );
}
