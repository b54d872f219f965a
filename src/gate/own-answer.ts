import { OptionError } from '../base/errors.ts';
import { isPromise } from '../base/maybe-promise.ts';
import type { Decision } from '../core/decision.ts';
import { checkResponse } from '../http/checked-response.ts';
import { isHopByHop } from '../http/hop-by-hop.ts';
import { hasLength, type Problem, type Reply } from '../http/problem.ts';
import { forEachField } from '../http/raw-fields.ts';

/**
 * The facts of a `Decision` that rejected a request. Not the class, because the package's types for ESM and for
 * CommonJS have a class each, and Fastify's `config` may get this type from both.
 */
export type Rejection = Pick<
  Decision,
  | 'account'
  | 'route'
  | 'cost'
  | 'decidedAt'
  | 'degraded'
  | 'rejectedBy'
  | 'shown'
  | 'trace'
  | 'impossible'
  | 'blocked'
  | 'inFlight'
>;

/** Facts for an `answer` function beside the error object. */
export interface AnswerContext<Request> {
  /** The request, as resolvers get it. */
  readonly request: Request;
  /** The request's id: the `req_id` of the error object, and of events. */
  readonly requestId: string;
  /**
   * The fields that the gate adds unless the reply sets them, names in lower case: `cache-control: no-store`, and after
   * a rejection `retry-after` and the rate-limit fields.
   */
  readonly headers: Reply['headers'];
  /** The decision that rejected the request; undefined if no limit rejected it. */
  readonly decision: Rejection | undefined;
}

/** Makes an answer of an error; undefined if the gate's own answer is right. */
export type AnswerFunction<Request> = (problem: Problem, context: AnswerContext<Request>) => Reply | undefined;

/**
 * The reply that the function returns, with the fields of the gate's own answer that it leaves out.
 * @param standard the gate's own answer
 * @returns undefined if the function returns undefined
 * @throws OptionError if the result cannot be sent, and the function's errors
 */
export function ownReply<Request>(
  answer: AnswerFunction<Request>,
  problem: Problem,
  standard: Reply,
  about: Omit<AnswerContext<Request>, 'headers'>,
): Reply | undefined {
  const { 'content-type': _type, 'content-length': _length, ...headers } = standard.headers;
  const given: unknown = answer(problem, { headers, ...about });
  if (given === undefined) return undefined;
  // No other code handles its rejection, which would end the process.
  if (isPromise(given)) given.then(undefined, () => {});
  if (typeof given !== 'object' || given === null || isPromise(given))
    throw new OptionError('answer()', given, 'must return a reply or undefined, and no promise');
  const { status, fields, body } = checkResponse(given, 'answer()');
  const own = new Map<string, string[]>();
  forEachField(fields, (_name, value, name) => {
    // How the body is framed is the gate's and the server's business.
    if (name !== 'content-length' && !isHopByHop(name)) own.set(name, [...(own.get(name) ?? []), value]);
  });
  if (hasLength(status)) own.set('content-length', [String(body.length)]);
  const ownHeaders = [...own].map(([name, values]) => [name, values.length === 1 ? values[0] : values]);
  return { status, headers: { ...headers, ...Object.fromEntries(ownHeaders) }, body };
}
