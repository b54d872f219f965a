import { problemOfBody } from '../../gate/body-problem.ts';
import { createProblem, problemReply } from '../../http/problem.ts';
import type { NodeMiddleware } from '../node.ts';
import { type ReadBodyOptions, readBody } from '../shared/request.ts';
import { readable } from './request.ts';
import { sendReply } from './send.ts';

/**
 * Reads the body of every request with an idempotency key and puts it back, for a gate that runs only after the body
 * parsers. A body that cannot be read is rejected here with 400, 408 or 413.
 * @example
 * ```ts
 * const app = await NestFactory.create(App);
 * app.use(readAhead());
 * ```
 */
export function readAhead(options: ReadBodyOptions = {}): NodeMiddleware {
  return (request, response, next) => {
    if (request.headers['idempotency-key'] === undefined) return next();
    readBody(readable(request), options).then(
      () => next(),
      (error: unknown) => {
        const reply = problemOfBody(error, (status, type, detail) =>
          problemReply(createProblem(status, type, detail, crypto.randomUUID())),
        );
        if (reply === undefined) next(error);
        else sendReply(response, reply);
      },
    );
  };
}
