import type { IncomingMessage } from 'node:http';
import { fieldValues, tooLarge } from 'headgate/internal';
import type { MaybePromise } from 'headgate/stores';
import { groupsOf } from '../config/groups.ts';
import type { ChooseLane } from '../config/lanes.ts';
import type { Route } from '../config/routes.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { isRefusal, type Refusal, refuse, refuseBody } from '../exchange/refusal.ts';
import { type AdmittedHead, type BodyStageOptions, createBodyStage } from './body-stage.ts';
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
  readonly chooseLane: ChooseLane;
}

/** The stages in front of the gate. Each stores its results on the exchange, and returns the first refusal. */
export interface Admission {
  /**
   * In this order: path (400), route (404), key (401), account and access (404, 403), length (413), shares of the
   * application (503, 429), validation (422). Reads a body only if it must: see {@link createBodyStage}.
   */
  admit(exchange: Exchange): MaybePromise<Refusal | undefined>;
  /** The same for a request whose body is not sent. */
  admitHead(exchange: Exchange): Refusal | undefined;
}

export function createAdmission(options: AdmissionOptions): Admission {
  const { routes, keys, accounts, shares, maxBodyBytes, chooseLane } = options;
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
  const readHead = (exchange: Exchange): AdmittedHead | Refusal => {
    const { request } = exchange;
    const malformed = refusalOfHead(exchange);
    if (malformed !== undefined) return malformed;
    const target = readTarget(exchange.target);
    if (isRefusal(target)) return target;
    const match = routes.match(exchange.method, target.path);
    if (match === undefined) return refuse(404, 'errors/resource_not_found', 'There is no such route.');
    const { route } = match;
    exchange.route = route;
    const key = authenticate(exchange, route);
    if (isRefusal(key)) return key;
    const account = findAccount(request, target, match, key);
    if (isRefusal(account)) return account;
    exchange.account = account;
    exchange.lane = chooseLane(route.lane, key.lane);
    exchange.groups = groupsOf(route, key, account);
    return { route, key, target };
  };
  return {
    admit(exchange) {
      const head = readHead(exchange);
      if (isRefusal(head)) return head;
      const { headers } = exchange.request;
      if (Number(headers['content-length'] ?? 0) > maxBodyBytes) return refuseBody(tooLarge(maxBodyBytes));
      return shares.enter(exchange, head.key.application) ?? readBody(exchange, head);
    },
    admitHead(exchange) {
      const head = readHead(exchange);
      if (isRefusal(head)) return head;
      if (head.route.source?.place === 'body') return NO_BODY;
      return shares.enter(exchange, head.key.application);
    },
  };
}

const NO_BODY = refuse(
  422,
  'errors/unprocessable_entity',
  'The route takes its account from the body, and a proxy that asks for a decision sends no body.',
);

/** In place of the key, on a public route. Such requests share the bounds of one application, which has no name. */
const NO_KEY: ApiKey = { name: '', application: '', role: 'account', scope: null };

/**
 * The token of `X-API-KEY`, also if it is empty, otherwise the token of `Authorization: Bearer`. Then `Authorization`
 * is the gateway's own field, and is not forwarded.
 */
export function tokenOf(request: IncomingMessage): string | undefined {
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
