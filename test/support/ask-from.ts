import { once } from 'node:events';
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';

/** Where a request goes: a port of 127.0.0.1, or a Unix socket. */
export interface Target {
  readonly port?: number;
  readonly socketPath?: string;
  readonly path?: string;
  /** The address that the request comes from. On Linux every address of 127.0.0.0/8 is this machine's. */
  readonly from?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a request over a connection of its own. */
export async function askFrom({ from = '127.0.0.1', port, socketPath, ...others }: Target) {
  const to = socketPath === undefined ? { host: '127.0.0.1', port, localAddress: from } : { socketPath };
  const sent = request({ ...others, ...to, agent: false }).end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  const headers: IncomingHttpHeaders = answer.headers;
  return { status: answer.statusCode, headers, body: await text(answer) };
}
