import type { IncomingMessage } from 'node:http';
import { pipeline, Readable } from 'node:stream';
import type { NodeRequest, NodeResponse } from '../../src/adapters/node/http.ts';
import type { SuiteAnswer } from './adapter-suite/subject.ts';

/** Reads the body from the stream. */
export async function bodyOf(request: NodeRequest): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** The body of a response as Node frameworks accept it. */
export function nodeBody({ body }: SuiteAnswer): string | Buffer | Readable | undefined {
  if (body instanceof Uint8Array) return Buffer.from(body);
  return typeof body === 'object' ? Readable.from(body, { objectMode: false }) : body;
}

/** Sends a response with Node's own functions. */
export function writeNode(response: NodeResponse, answer: SuiteAnswer): void {
  const body = nodeBody(answer);
  response.writeHead(answer.status, answer.headers as never);
  if (body instanceof Readable) pipeline(body, response as never, () => {});
  else response.end(body as never);
}

export function headerOf({ headers }: { headers: IncomingMessage['headers'] }, name: string): string | undefined {
  return headers[name]?.toString();
}
