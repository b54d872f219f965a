import type { ServerResponse } from 'node:http';
import { type ExecutionContext, HttpException, HttpStatus } from '@nestjs/common';
import type { MaybePromise } from '../../base/maybe-promise.ts';
import { after } from '../../base/maybe-promise.ts';
import type { Gate } from '../../gate/gate.ts';
import type { ProblemObject, Reply } from '../../http/problem.ts';
import { enterGate, passageOf } from '../node/bridge.ts';
import { answered, type NestRequest, type NestResponse, rawResponse, send } from './http.ts';

/** The name of the field that is in the gate, on the request. */
const FIELD = Symbol('headgate.nest.field');
/** On the response: what became of the last field that entered a gate. */
const LAST = Symbol('headgate.nest.last');

/** On the response: whether the gate has rejected a field, whose window the response then shows. */
const REFUSED = Symbol('headgate.nest.refused');

/** True, or why the gate rejects the field. */
type Result = true | GraphqlRefusal;
type MarkedRequest = NestRequest & { [FIELD]?: string };
type MarkedResponse = ServerResponse & { [LAST]?: MaybePromise<Result>; [REFUSED]?: boolean };

/** What Nest's GraphQL drivers have in the context of an operation, or the user's function `context`. */
interface GraphqlContext {
  readonly req?: NestRequest & { readonly res?: ServerResponse | undefined };
  readonly res?: NestResponse;
  /** Mercurius has the reply, and not the response. */
  readonly reply?: NestResponse;
}

/** The part of `GraphQLResolveInfo` that is used here. */
interface FieldInfo {
  readonly fieldName: string;
  readonly parentType: { readonly name: string };
  readonly path: { readonly prev?: object | undefined };
}

/**
 * Takes a root field of an operation through a gate. For the limits, each root field is a request of its own: aliases
 * would make one request out of a hundred otherwise. Fields below the root belong to their root field, and pass.
 * @throws GraphqlRefusal if the gate rejects the field, as a promise or at once
 * @throws Error if the context has no HTTP request or response
 */
export function enterField(gate: Gate<NestRequest>, context: ExecutionContext): MaybePromise<boolean> {
  const args = context.getArgs();
  const { parentType, fieldName, path }: FieldInfo = args[3] ?? args[2];
  if (path.prev !== undefined) return true;
  const name = `${parentType.name}.${fieldName}`;
  const { request, response } = httpOf(args[3] === undefined ? args[1] : args[2], name);
  const raw: MarkedResponse = rawResponse(response);
  // One field after the other: the first one that the gate lets through holds the idempotency key of them all.
  const result = after(raw[LAST], () => {
    request[FIELD] = name;
    return enterGate<NestRequest, Result>(gate, request, {
      response: raw,
      mayEnterAgain: true,
      answer(reply, isReplay) {
        if (!isReplay) {
          raw[REFUSED] = true;
          return new GraphqlRefusal(reply, raw);
        }
        // The stored response is the whole one, so that no other field may run.
        send(response, reply);
        return answered();
      },
      proceed() {
        if (raw[REFUSED]) passageOf(raw)?.hide?.();
        return true;
      },
      skip: answered,
    });
  });
  raw[LAST] = result;
  return after(result, (refusal) => {
    if (refusal === true) return true;
    throw refusal;
  });
}

/** The field that is in the gate, `Query.chats`; undefined if the request is not in a gate of GraphQL. */
export function fieldOf(request: NestRequest): string | undefined {
  return (Object(request) as MarkedRequest)[FIELD];
}

function httpOf({ req, res, reply = res }: GraphqlContext, name: string) {
  const response = reply ?? req?.res;
  if (req === undefined || response === undefined) {
    throw new Error(
      `headgate: ${name} has no HTTP request and response in its GraphQL context. Return { req, res } or ` +
        '{ req, reply } from the option `context` of GraphQLModule. If it runs over a WebSocket, mark it with ' +
        '@SkipHeadgate().',
    );
  }
  return { request: req as MarkedRequest, response };
}

/**
 * A gate's answer as an error of one field. It is an exception of Nest's, because Nest logs every other error that a
 * guard throws. GraphQL libraries copy `extensions`.
 */
class GraphqlRefusal extends HttpException {
  readonly extensions: object;

  constructor({ status, headers, body }: Reply, response: ServerResponse) {
    const code = status === HttpStatus.UNAUTHORIZED ? 'UNAUTHENTICATED' : HttpStatus[status];
    const problem = problemOf(body);
    const { title, detail = title } = problem;
    super(problem, status);
    this.message = detail ?? String(code);
    const { 'retry-after': retryAfter } = headers;
    this.extensions = { code, ...problem, status, ...(retryAfter && { retryAfter: Number(retryAfter) }) };
    if (response.headersSent) return;
    // The body is the one of the operation.
    for (const [name, value] of Object.entries(headers))
      if (!name.startsWith('content-')) response.setHeader(name, value);
  }
}

/** The error object; of an answer in another form, nothing is known. */
function problemOf(body: Reply['body']): Partial<ProblemObject> {
  try {
    return Object(JSON.parse(typeof body === 'string' ? body : new TextDecoder().decode(body)));
  } catch {
    return {};
  }
}
