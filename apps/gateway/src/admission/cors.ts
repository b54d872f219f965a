import type { IncomingMessage } from 'node:http';
import type { Reply } from 'headgate/http';
import { type HeaderFields, RATE_LIMIT_FIELD_NAMES } from 'headgate/http';
import type { Config } from '../config/schema.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { isRefusal } from '../exchange/refusal.ts';
import { refusalOfHead } from './admission.ts';
import type { Routes } from './routes.ts';
import { readTarget } from './target.ts';

/** Fields that the gateway itself reads, and the type of a body. The account's field is added per path. */
const READ_FIELDS = ['x-api-key', 'authorization', 'idempotency-key', 'content-type'];
/** Fields that the gateway itself writes. */
const WRITTEN_FIELDS = [...RATE_LIMIT_FIELD_NAMES, 'x-request-id', 'idempotency-replayed', 'idempotency-status'];

/** The answer depends on the origin, so a cache must not give it to another origin. */
const NOT_ALLOWED: HeaderFields = { vary: 'Origin' };
const EMPTY: Reply = { status: 204, headers: {}, body: '' };

/**
 * The stage that serves pages of other origins. Adds the fields of CORS to the exchange for any answer.
 * @returns the answer to a preflight of a listed path, which carries no key; undefined for every other request
 */
export type CorsStage = (exchange: Exchange) => Reply | undefined;

/** @param cors a checked section of the config */
export function createCors(cors: NonNullable<Config['cors']>, routes: Pick<Routes, 'methodsOf'>): CorsStage {
  const { origins, headers, exposedHeaders, credentials, maxAgeS } = cors;
  const fieldsOf = (origin: string): HeaderFields => ({
    'access-control-allow-origin': origin,
    ...(credentials && { 'access-control-allow-credentials': 'true' }),
    'access-control-expose-headers': [...WRITTEN_FIELDS, ...exposedHeaders].join(', '),
    // With a wildcard the answer is the same for every origin.
    ...(origin !== '*' && NOT_ALLOWED),
  });
  const allowed = new Map(origins.map((origin) => [origin, fieldsOf(origin)]));
  const forAll = allowed.get('*');
  return (exchange) => {
    const { request } = exchange;
    const fields = forAll ?? allowed.get(request.headers.origin ?? '');
    exchange.cors = fields ?? NOT_ALLOWED;
    if (!isPreflight(request)) return undefined;
    const target = readTarget(exchange.target);
    // The next stage refuses these.
    if (isRefusal(target) || refusalOfHead(exchange) !== undefined) return undefined;
    const listed = routes.methodsOf(target.path);
    if (listed.size === 0) return undefined;
    if (fields === undefined) return EMPTY;
    const accounts = [...listed.values()].flatMap(({ source }) => (source?.place === 'header' ? source.name : []));
    exchange.cors = {
      ...fields,
      'access-control-allow-methods': [...listed.keys()].join(', '),
      'access-control-allow-headers': [...new Set([...READ_FIELDS, ...accounts, ...headers])].join(', '),
      'access-control-max-age': String(maxAgeS),
    };
    return EMPTY;
  };
}

/** Any other OPTIONS is a request like others. */
function isPreflight({ method, headers }: IncomingMessage): boolean {
  return method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
}
