import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Stream } from 'node:http2';

/** A request of `node:http`, or of the compatibility API of `node:http2`. */
export type NodeRequest = IncomingMessage | Http2ServerRequest;
/** A response of either. */
export type NodeResponse = ServerResponse | Http2ServerResponse;

/** What a request or response of HTTP/2 has in the place of a connection: others share that one. */
export function streamOf(message: NodeRequest | NodeResponse): ServerHttp2Stream | undefined {
  return (message as Partial<Http2ServerRequest>).stream;
}

/** Nobody is there any more. */
export function isGone(message: NodeRequest | NodeResponse): boolean {
  return streamOf(message)?.destroyed ?? (message as IncomingMessage).destroyed;
}

/** Every value of a field, by its name in lower case: neither `headers` nor HTTP/2 tell a field that is given twice from one with a comma. */
export function valuesOf({ rawHeaders }: NodeRequest, name: string): string[] {
  const values: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (rawHeaders[i]?.toLowerCase() === name) values.push(rawHeaders[i + 1] as string);
  return values;
}
