import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Stream } from 'node:http2';
import type { PeerReader } from '../../address/peer.ts';
import { checkArgument } from '../shared/mount.ts';

/** A request of `node:http`, or of the compatibility API of `node:http2`. */
export type NodeRequest = IncomingMessage | Http2ServerRequest;
/** A response of `node:http`, or of the compatibility API of `node:http2`. */
export type NodeResponse = ServerResponse | Http2ServerResponse;

/** Middleware in the style of Connect. It can also be called by hand in front of any `node:http` handler. */
export type NodeMiddleware<Request extends IncomingMessage = IncomingMessage> = (
  request: Request,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void;

/** Checks the shape: a test may use another class. */
export function isNodeRequest(value: unknown): value is NodeRequest {
  return Array.isArray((value as Partial<NodeRequest> | null | undefined)?.rawHeaders);
}

/**
 * Checks the argument of a helper.
 * @throws OptionError
 */
export function checkNodeRequest(request: NodeRequest): void {
  checkArgument(isNodeRequest(request), 'request', request, "Node's request");
}

/**
 * Checks the argument of a helper.
 * @throws OptionError
 */
export function checkNodeResponse(response: NodeResponse): void {
  checkArgument(typeof response?.writeHead === 'function', 'response', response, "Node's response");
}

/** The stream of an HTTP/2 request or response; undefined in HTTP/1. Many streams share one connection. */
export function streamOf(message: NodeRequest | NodeResponse): ServerHttp2Stream | undefined {
  return (message as Partial<Http2ServerRequest>).stream;
}

/** Whether the client is gone. */
export function isGone(message: NodeRequest | NodeResponse): boolean {
  return streamOf(message)?.destroyed ?? (message as IncomingMessage).destroyed;
}

/**
 * Node's knowledge of the client of a request, for limits by address.
 * @param unwrap returns Node's request
 */
export function nodePeer<Context>(
  unwrap: (context: Context) => Pick<NodeRequest, 'socket' | 'headers'>,
): PeerReader<Context> {
  return {
    // Requests that a platform or a test made up may have no socket.
    address: (context) => unwrap(context).socket?.remoteAddress,
    fields: (context) => unwrap(context).headers,
  };
}
