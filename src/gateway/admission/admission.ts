import type { MaybePromise } from '../../core/ports.ts';
import { createIntake, valuesOf } from '../body/read-body.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { isRefusal, type Refusal, refuse } from '../exchange/refusal.ts';
import { type HeadSource, readAccount } from './account-source.ts';
import type { Account, Accounts } from './accounts.ts';
import type { ApiKey, Keys } from './keys.ts';
import type { RouteMatch, Routes } from './routes.ts';
import { readTarget, type Target } from './target.ts';

/** What the stages in front of the gate ask. */
export interface AdmissionOptions {
  readonly routes: Routes;
  readonly keys: Keys;
  readonly accounts: Accounts;
  /** In bytes. */
  readonly maxBodyBytes: number;
}

/**
 * The stages in front of the gate, in their order (semantics.md): path (400), route (404), key (401), account and access (404, 403),
 * validation (422, 413). Notes what it finds on the exchange; returns the first refusal. Reads a body only where it must: see intake.ts.
 */
export function createAdmission({ routes, keys, accounts, maxBodyBytes }: AdmissionOptions) {
  const takeIn = createIntake({ accounts, maxBodyBytes });
  return (exchange: Exchange): MaybePromise<Refusal | undefined> => {
    const { request } = exchange;
    const malformed = refusalOfHead(exchange);
    if (malformed !== undefined) return malformed;
    const target = readTarget(request.url ?? '');
    if (isRefusal(target)) return target;
    const match = routes.match(request.method ?? '', target.path);
    if (match === undefined) return refuse(404, 'errors/resource_not_found', 'There is no such route.');
    exchange.route = match.route;
    const token = request.headers['x-api-key'];
    const key = keys.authenticate(Array.isArray(token) ? token.join() : token);
    if (isRefusal(key)) return key;
    const account = accountOf(exchange, target, match, key, accounts);
    if (isRefusal(account)) return account;
    exchange.account = account;
    if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) return tooLarge(maxBodyBytes);
    return takeIn(exchange, { route: match.route, key, target, account });
  };
}

/** Undefined where the route is not limited, or the account stands in the body. */
function accountOf(
  { request }: Exchange,
  target: Target,
  match: RouteMatch,
  key: ApiKey,
  accounts: Accounts,
): Account | Refusal | undefined {
  const { source } = match.route;
  if (source === undefined || source.place === 'body') return undefined;
  const id = readAccount(source as HeadSource, request, target, match);
  return isRefusal(id) ? id : accounts.access(id, key);
}

/** @param maxBodyBytes the bound, for the message */
export function tooLarge(maxBodyBytes: number): Refusal {
  return refuse(413, 'errors/payload_too_large', `The body has more than ${maxBodyBytes} bytes.`);
}

/** What Node's parser lets pass, but a request that is forwarded must not have. */
function refusalOfHead(exchange: Exchange): Refusal | undefined {
  const { request } = exchange;
  // Node's parser takes other versions as well, and answers in 1.1.
  if (request.httpVersionMajor !== 1)
    return refuse(400, 'errors/malformed_request', 'The gateway speaks HTTP/1.1 and HTTP/1.0.');
  const hosts = valuesOf(exchange, 'host').length;
  if (hosts > 1 || (hosts === 0 && request.httpVersion === '1.1')) {
    return refuse(400, 'errors/malformed_request', 'The request must have the header Host once.');
  }
  if (valuesOf(exchange, 'content-type').length > 1) {
    return refuse(400, 'errors/malformed_request', 'The header Content-Type is given more than once.');
  }
  const encoding = request.headers['transfer-encoding'];
  // Another coding would have to be decoded, or be forwarded without its name.
  return encoding === undefined || encoding.toLowerCase() === 'chunked'
    ? undefined
    : refuse(400, 'errors/malformed_request', 'The only transfer coding that a request may have is chunked.');
}
