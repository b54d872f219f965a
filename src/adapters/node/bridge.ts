import type { ServerResponse } from 'node:http';
import type { MaybePromise } from '../../core/ports.ts';
import type { Entry, Passage } from '../../gate/gate.ts';
import type { Reply } from '../../http/problem.ts';
import { forgetBody } from './body.ts';
import { AnswerCapture } from './capture.ts';
import { type HeadersInput, settleHead } from './head.ts';
import { isGone, type NodeResponse } from './http.ts';

/** On the response itself rather than in a WeakMap: one of those for each request is work for the garbage collector. */
const PASSAGE = Symbol('headgate.passage');
const FROM_CACHE = Symbol('headgate.fromCache');

type Noted = NodeResponse & { [PASSAGE]?: Passage; [FROM_CACHE]?: boolean };
type Response = ServerResponse & { [PASSAGE]?: Passage; [FROM_CACHE]?: boolean };

/** Says, before the head is written, that a cache answers this request after all: its charge is taken back (S12). */
export function servedFromCache(response: NodeResponse): void {
  (response as Noted)[FROM_CACHE] = true;
}

/** The passage of the request behind this response: its `decision`, and `abandon()` for one that never reached the provider. */
export function passageOf(response: NodeResponse): Passage | undefined {
  return (response as Noted)[PASSAGE];
}

/** Goes on at once where the gate answered at once: no turn of the event loop is lost. */
export function whenEntered(entry: MaybePromise<Entry>, go: (entry: Entry) => void): void {
  if ('kind' in entry) go(entry);
  else void entry.then(go);
}

/**
 * Lets a request pass: from here on its response is captured.
 * @returns `gone` where nobody waits for an answer any more, and the handler is not to run; what captures an answer that is kept
 */
export function letPass(response: ServerResponse, passage: Passage): AnswerCapture | 'gone' | undefined {
  const { recording } = passage;
  (response as Response)[PASSAGE] = passage;
  forgetBody(response.req);
  if (recording === undefined) return capture(response, passage);
  if (response.headersSent || response.writableEnded || isGone(response)) {
    // Nothing was done for it yet: its retry is to do it.
    void passage.abandon();
    return 'gone';
  }
  return new AnswerCapture(response, passage, recording, () => (response as Response)[FROM_CACHE] === true);
}

/** Answers in the gate's name. */
export function send(response: ServerResponse, reply: Reply): void {
  // The client may have gone, or something in front of us may have answered, while the gate was asking its store.
  if (response.headersSent || response.writableEnded) return;
  response.writeHead(reply.status, fieldsOf(reply, response.req.method)).end(reply.body);
}

/** The fields of the gate's own answer: of an answer to HEAD nobody knows how long its body would have been. */
export function fieldsOf({ headers }: Reply, method: string | undefined): Reply['headers'] {
  const { 'content-length': length, ...others } = headers;
  return method === 'HEAD' && length === '0' ? others : headers;
}

/** Adds our fields when the head is written. */
function capture(response: Response, passage: Passage): undefined {
  const writeHead = response.writeHead as (status: number, ...rest: unknown[]) => ServerResponse;
  const capturing = (status: number, first?: string | HeadersInput, second?: HeadersInput) => {
    response.writeHead = writeHead;
    const outcome = { status: Number(status), cached: response[FROM_CACHE] === true };
    const all = settleHead(response, passage, outcome, first, second);
    return typeof first === 'string'
      ? writeHead.call(response, status, first, all)
      : writeHead.call(response, status, all);
  };
  response.writeHead = capturing as typeof response.writeHead;
}
