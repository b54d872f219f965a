import type { IncomingMessage, ServerResponse } from 'node:http';
import { jsonReply, type Reply } from 'headgate/http';
import { InputError, isOutage, readBody, readHeaders, readQuery, refuseInput } from '../api/input.ts';
import { Answered, type Caller, isStreaming, type Operation } from '../api/operation.ts';
import type { Config } from '../config/schema.ts';
import { refusalReply } from '../exchange/answers.ts';
import { isRefusal, type Refusal, refuse, refuseForNow, UNEXPECTED } from '../exchange/refusal.ts';
import type { Log } from '../operations/log.ts';
import type { Metrics } from '../operations/metrics.ts';
import { createAuthentication, isStillPermitted, refuseRole } from './authentication.ts';
import { NoAnswerError } from './combined-figures.ts';
import { refuseOrigin } from './origin.ts';

/** Options of {@link createAdminApi}. */
export interface AdminApiOptions {
  readonly operations: readonly Operation[];
  readonly settings: () => Pick<NonNullable<Config['admin']>, 'tokens' | 'hosts'>;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'onAdminRequest' | 'onAdminAuthFailure'>;
}

/** Answers the requests for the operations. */
export interface AdminApi {
  /** Whether the config contains tokens. Without them the Admin API is off. */
  readonly isOn: boolean;
  /** Answers every request. Never rejects. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

/** A request that may go on to its operation. */
interface Permitted {
  readonly path: string;
  readonly operation: Operation;
  readonly query: string | undefined;
  readonly caller: Caller;
}

type Asked =
  | Permitted
  | { readonly path: string; readonly operation?: Operation | undefined; readonly refusal: Refusal };

const ANSWER_FIELDS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };

/**
 * The stages of a request, in this order: host and origin (403), path (404), method (405), token (401, 429), role (403),
 * query (400, 422), header fields (422), body (400, 413, 415, 422), and then the operation.
 */
export function createAdminApi({ operations, settings, log, metrics }: AdminApiOptions): AdminApi {
  const paths = [...new Set(operations.map(({ path }) => path))];
  const byPath = new Map(paths.map((path) => [path, operations.filter((each) => each.path === path)]));
  const { authenticate } = createAuthentication(metrics.onAdminAuthFailure);

  /** The operation that a request asks for, or a refusal if there is none. */
  const find = (request: IncomingMessage, path: string): Operation | Refusal => {
    const ofPath = byPath.get(path);
    if (ofPath === undefined) return refuse(404, 'errors/resource_not_found', 'The Admin API has no such path.');
    const found = ofPath.find(({ method }) => method === request.method);
    return found ?? refuse(405, 'errors/method_not_allowed', `This path has only ${methodsOf(ofPath)}.`);
  };
  const callerOf = (request: IncomingMessage, { role }: Operation, requestId: string): Caller | Refusal => {
    if (role === 'none') return { name: '', role: 'viewer', tokenId: '', requestId, isPermitted: () => true };
    const token = authenticate(request, settings().tokens);
    if (isRefusal(token)) return token;
    const isPermitted = (): boolean => isStillPermitted(token, role, settings().tokens);
    const { name, sha256: tokenId } = token;
    return refuseRole(token, role) ?? { name, role: token.role, tokenId, requestId, isPermitted };
  };
  const run = async (request: IncomingMessage, { operation, query, caller }: Permitted): Promise<unknown> => {
    const parameters = readQuery(operation.query, query);
    if (isRefusal(parameters)) return parameters;
    const headers = readHeaders(operation.headers, request);
    if (isRefusal(headers)) return headers;
    const body = await readBody(operation.body, request);
    return isRefusal(body) ? body : await operation.run({ query: parameters, body, headers }, caller);
  };
  /** The checked request of a caller, or a refusal if the caller may not send it. */
  const admit = (request: IncomingMessage, id: string): Asked => {
    const [path = '', query] = splitOnce(request.url ?? '');
    const operation = refuseOrigin(request, settings().hosts) ?? find(request, path);
    if (isRefusal(operation)) return { path, refusal: operation };
    const caller = callerOf(request, operation, id);
    return isRefusal(caller) ? { path, operation, refusal: caller } : { path, operation, query, caller };
  };
  const fail = (error: unknown, id: string): Refusal => {
    if (error instanceof InputError) return refuseInput(error);
    if (error instanceof NoAnswerError) return refuseForNow(`${error.message} The log says if one ended.`);
    if (isOutage(error))
      return refuseForNow(`The store did not answer in time. Look whether it did something: ${DOUBT}`);
    log.logger.error({ req_id: id, err: error }, 'unexpected error');
    return UNEXPECTED;
  };

  return {
    get isOn() {
      return settings().tokens.length > 0;
    },
    async handle(request, response) {
      const id = crypto.randomUUID();
      const asked = admit(request, id);
      const outcome =
        'refusal' in asked ? asked.refusal : await run(request, asked).catch((error: unknown) => fail(error, id));
      const { result, headers, logged } = outcome instanceof Answered ? outcome : new Answered(outcome, {});
      const status = isRefusal(result) ? result.status : 200;
      metrics.onAdminRequest(asked.operation?.id, status);
      const by = 'caller' in asked ? asked.caller.name : undefined;
      const level = request.method === 'GET' ? 'debug' : 'info';
      log.logger[level]({ req_id: id, operation: asked.operation?.id, by, status, ...logged }, 'admin request');
      const fields = { ...ANSWER_FIELDS, ...headers, 'x-request-id': id };
      if (isStreaming(result)) {
        response.writeHead(200, { ...fields, 'content-type': 'text/event-stream' });
        result.stream(response);
        return;
      }
      const allow = status === 405 ? { allow: methodsOf(byPath.get(asked.path) ?? []) } : {};
      const reply = isRefusal(result)
        ? refusalReply(result, id, { ...fields, ...allow })
        : jsonReply(200, result, fields);
      send(request, response, reply);
    },
  };
}

const DOUBT = 'a command that is late may still be executed.';

function methodsOf(operations: readonly Operation[]): string {
  return operations.map(({ method }) => method).join(', ');
}

function splitOnce(url: string): [path: string, query: string | undefined] {
  const at = url.indexOf('?');
  return at === -1 ? [url, undefined] : [url.slice(0, at), url.slice(at + 1)];
}

/** Sends an answer. Does not wait for a request body that is still arriving. */
function send(request: IncomingMessage, response: ServerResponse, { status, headers, body }: Reply): void {
  if (!request.complete) response.shouldKeepAlive = false;
  response.writeHead(status, headers).end(body);
  request.resume();
}
