import { problemOfBody } from '../../gate/body-problem.ts';
import { createProblem, problemReply, type Reply } from '../../http/problem.ts';
import { checkReadBody, keepBody, type ReadBodyOptions, readBody } from '../shared/request.ts';
import type { NodeMiddleware, NodeRequest } from './http.ts';
import { readable } from './request.ts';
import { sendReply } from './send.ts';

/**
 * Reads the body of every request with an idempotency key and puts it back, for a gate that runs only after the body
 * parsers. Mount it in front of them. A body that cannot be read is rejected here with 400, 408 or 413.
 * @throws OptionError
 * @example
 * ```ts
 * app.use(readAhead());
 * app.use(express.json());
 * app.post('/emails', headgate(gate), handler);
 * ```
 */
export function readAhead(options: ReadBodyOptions = {}): NodeMiddleware {
  const read = createReadAhead(options);
  return (request, response, next) => {
    const reading = read(request);
    if (reading === undefined) return next();
    reading.then((reply) => (reply === undefined ? next() : sendReply(response, reply)), next);
  };
}

/**
 * Makes the function under the middleware.
 * @returns a function that returns undefined if the request is without a key; its promise resolves to the answer if the
 * body cannot be read
 * @throws OptionError
 */
export function createReadAhead(
  options: ReadBodyOptions,
): (request: NodeRequest) => Promise<Reply | undefined> | undefined {
  const limits = checkReadBody(options);
  return (request) => {
    if (request.headers['idempotency-key'] === undefined) return undefined;
    keepBody(request);
    return readBody(readable(request), limits).then(() => undefined, answerOf);
  };
}

function answerOf(error: unknown): Reply {
  const reply = problemOfBody(error, (status, type, detail) =>
    problemReply(createProblem(status, type, detail, crypto.randomUUID())),
  );
  if (reply === undefined) throw error;
  return reply;
}
