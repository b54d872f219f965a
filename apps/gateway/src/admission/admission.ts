import type { IncomingMessage } from 'node:http';
import { fieldValues, tooLarge } from 'headgate/internal';
import type { MaybePromise } from 'headgate/stores';
import type { Route } from '../config/routes.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { isRefusal, type Refusal, refuse, refuseBody } from '../exchange/refusal.ts';
import { type BodyStageOptions, createBodyStage } from './body-stage.ts';
import { bearerTokenOf } from './credentials.ts';
import type { ApiKey, Keys } from './keys.ts';
import { readAccount } from './read-account.ts';
import type { RouteMatch, Routes } from './routes.ts';
import type { Shares } from './shares.ts';
import { readTarget, type Target } from './target.ts';

/** Options of the stages in front of the gate. */
export interface AdmissionOptions extends BodyStageOptions {
  readonly routes: Routes;
  readonly keys: Keys;
  readonly shares: Shares;
}

/**
 * The stages in front of the gate, in this order: path (400), route (404), key (401), account and access (404, 403),
 * length (413), shares of the application (503, 429), validation (422). Stores its results on the exchange, and returns
 * the first refusal. Reads a body only if it must: see {@link createBodyStage}.
 */
export function createAdmission(options: AdmissionOptions) {
  const { routes, keys, accounts, shares, maxBodyBytes } = options;
  const readBody = createBodyStage(options);
  /** Undefined if the route is not limited, or takes the account from the body. */
  const findAccount = (request: IncomingMessage, target: Target, match: RouteMatch, key: ApiKey) => {
    const consumer = accounts.ofConsumer(match.route.source, key, request);
    if (consumer !== undefined) return consumer;
    const id = readAccount(request, target, match);
    return id === undefined || isRefusal(id) ? id : accounts.access(id, key);
  };
  const authenticate = (exchange: Exchange, { isPublic }: Route): ApiKey | Refusal => {
    const key = keys.authenticate(tokenOf(exchange.request));
    if (isRefusal(key)) return isPublic ? NO_KEY : key;
    exchange.application = key.application;
    return key;
  };
  return (exchange: Exchange): MaybePromise<Refusal | undefined> => {
    const { request } = exchange;
    const malformed = refusalOfHead(exchange);
    if (malformed !== undefined) return malformed;
    const target = readTarget(request.url ?? '');
    if (isRefusal(target)) return target;
    const match = routes.match(request.method ?? '', target.path);
    if (match === undefined) return refuse(404, 'errors/resource_not_found', 'There is no such route.');
    exchange.route = match.route;
    const key = authenticate(exchange, match.route);
    if (isRefusal(key)) return key;
    const account = findAccount(request, target, match, key);
    if (isRefusal(account)) return account;
    exchange.account = account;
    if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) return refuseBody(tooLarge(maxBodyBytes));
    return shares.enter(exchange, key.application) ?? readBody(exchange, { route: match.route, key, target });
  };
}

/** In place of the key, on a public route. Such requests share the bounds of one application, which has no name. */
const NO_KEY: ApiKey = { name: '', application: '', role: 'account', scope: null };

/**
 * The token of `X-API-KEY`, also if it is empty, otherwise the token of `Authorization: Bearer`. Then `Authorization`
 * is the gateway's own field, and is not forwarded.
 */
function tokenOf(request: IncomingMessage): string | undefined {
  const token = request.headers['x-api-key'];
  if (token !== undefined) return Array.isArray(token) ? token.join() : token;
  return bearerTokenOf(request);
}

/** Refuses heads that Node's parser accepts, but that must not be forwarded. */
export function refusalOfHead({ request }: Exchange): Refusal | undefined {
  // Node's parser accepts other versions too, and answers in 1.1.
  if (request.httpVersionMajor !== 1) return malformed('The gateway supports only HTTP/1.1 and HTTP/1.0.');
  const hosts = fieldValues(request.rawHeaders, 'host').length;
  if (hosts > 1 || (hosts === 0 && request.httpVersion === '1.1')) {
    return malformed('The request must have the header Host once.');
  }
  if (fieldValues(request.rawHeaders, 'content-type').length > 1) {
    return malformed('The header Content-Type is given more than once.');
  }
  const encoding = request.headers['transfer-encoding'];
  if (encoding === undefined) return undefined;
  // A proxy of HTTP/1.0 does not know chunks: to it, the body would be the next request (RFC 9112, section 6.1).
  if (request.httpVersion === '1.0') return malformed('A request of HTTP/1.0 must not have a transfer coding.');
  // Any other coding would have to be decoded here, or would be forwarded without its name.
  return encoding.toLowerCase() === 'chunked'
    ? undefined
    : malformed('The only transfer coding that a request may have is chunked.');
}

function malformed(detail: string): Refusal {
  return refuse(400, 'errors/malformed_request', detail);
}
