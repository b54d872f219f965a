import type { IncomingMessage } from 'node:http';
import type { Cost } from 'headgate';
import { createClientIp } from 'headgate/client-ip';
import type { GateAnswer } from 'headgate/gate';
import type { Reply } from 'headgate/http';
import { fieldValues } from 'headgate/internal';
import type { Admission } from '../admission/admission.ts';
import { isOutage, OUTAGE } from '../api/input.ts';
import type { Config } from '../config/schema.ts';
import { refusalReply, sendReply } from '../exchange/answers.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { isRefusal, type Refusal, refuse } from '../exchange/refusal.ts';
import type { Rules } from '../server/rules.ts';
import { RECEIPT_FIELD, receiptOf } from './receipt.ts';
import type { Settle } from './settlement.ts';

/** Options of {@link createForwardAuth}. */
export interface ForwardAuthOptions extends Pick<Rules, 'limitAddress' | 'gate'> {
  readonly trustedProxies: Config['clientAddress']['trustedProxies'];
  readonly admitHead: Admission['admitHead'];
  readonly settle: Settle;
  /** What the limits count beside requests. */
  readonly units: () => readonly string[];
}

/** The request that a proxy asks about. */
interface AskedRequest {
  readonly method: string;
  readonly target: string;
}

/** How a proxy asks, and what it understands. */
interface Form {
  readonly read: (rawHeaders: readonly string[]) => AskedRequest | Refusal;
  readonly shape?: (reply: Reply) => Reply;
}

/** The fields of each form are fixed: a client could send any other to have another request judged. */
const FORMS: ReadonlyMap<string, Form> = new Map([
  ['/decide', { read: readForwarded }],
  ['/decide/nginx', { read: readOriginal, shape: forNginx }],
]);

/** Where a proxy refunds a request that its service did not get. */
const REFUND = '/decide/refund';

/** An answer to a proxy must not be stored. */
const FIELDS: Reply['headers'] = { 'cache-control': 'no-store', 'content-length': '0' };

/**
 * Answers proxies that ask before they forward a request. The stages are those of a request that the gateway forwards,
 * except that its body and its idempotency key are not looked at.
 */
export function createForwardAuth({
  trustedProxies,
  limitAddress,
  admitHead,
  gate,
  settle,
  units,
}: ForwardAuthOptions): Rules {
  const isProxy = createProxyCheck(trustedProxies);
  const faults = new WeakMap<Exchange, Refusal>();
  const receipts = new WeakMap<Exchange, string>();
  const read = (exchange: Exchange): Refusal | undefined => {
    const { request } = exchange;
    const [path = '', query = ''] = (request.url ?? '').split('?', 2);
    const form = FORMS.get(path);
    exchange.shape = form?.shape;
    if (form === undefined && path !== REFUND) return NO_PATH;
    if (!isProxy(request)) return NOT_TRUSTED;
    if (form === undefined) {
      const receipt = onlyValue(request.rawHeaders, RECEIPT_FIELD);
      if (receipt === undefined) return missing('X-Headgate-Receipt');
      receipts.set(exchange, receipt);
      return undefined;
    }
    const asked = form.read(request.rawHeaders);
    if (isRefusal(asked)) return asked;
    const cost = readCost(query, units());
    if (cost !== undefined && isRefusal(cost)) return cost;
    exchange.method = asked.method;
    exchange.target = asked.target;
    exchange.cost = cost;
    return undefined;
  };
  const refund = async (receipt: string, id: string): Promise<GateAnswer> => {
    try {
      // A request without a charge has no receipt, and some proxies send an empty field then.
      const changed = receipt === '' || (await settle(receipt, 0));
      return { kind: 'answer', reply: isRefusal(changed) ? refusalReply(changed, id) : DONE };
    } catch (error) {
      if (!isOutage(error)) throw error;
      return { kind: 'answer', reply: refusalReply(OUTAGE, id) };
    }
  };
  const isDecision = (exchange: Exchange): boolean => !faults.has(exchange) && !receipts.has(exchange);
  return {
    prepare(exchange) {
      exchange.door = 'forward_auth';
      const fault = read(exchange);
      if (fault !== undefined) faults.set(exchange, fault);
      return undefined;
    },
    limitAddress: (exchange) => (isDecision(exchange) ? limitAddress?.(exchange) : undefined),
    admit: (exchange) => faults.get(exchange) ?? (isDecision(exchange) ? admitHead(exchange) : undefined),
    gate: {
      enter(exchange, id) {
        const receipt = receipts.get(exchange);
        return receipt === undefined ? gate.enter(exchange, id) : refund(receipt, exchange.id);
      },
    },
    forward(exchange, passage) {
      const { headers } = passage.settle({ status: 200 });
      // Nobody says when the request of the other proxy ends.
      void passage.end?.();
      const receipt = receiptOf(passage.decision);
      const own = receipt === undefined ? {} : { [RECEIPT_FIELD]: receipt };
      sendReply(exchange, { status: 200, headers: { ...FIELDS, ...headers, ...own }, body: '' });
    },
  };
}

/** No client has this address, so it is returned only if the peer is believed. */
const NOBODY = '0.0.0.0';

/** Whether the peer of a request is a proxy that the config trusts. */
function createProxyCheck(trustedProxies: ForwardAuthOptions['trustedProxies']): (request: IncomingMessage) => boolean {
  const clientIp = createClientIp({ trustedProxies, validate: false });
  return ({ socket }) => clientIp(socket.remoteAddress, { 'x-forwarded-for': NOBODY }) === NOBODY;
}

/** The fields of Caddy and Traefik. */
function readForwarded(rawHeaders: readonly string[]): AskedRequest | Refusal {
  const method = onlyValue(rawHeaders, 'x-forwarded-method');
  const target = onlyValue(rawHeaders, 'x-forwarded-uri');
  return method === undefined || target === undefined
    ? missing('X-Forwarded-Method and X-Forwarded-Uri')
    : { method, target };
}

/** The fields that are usual with nginx: `X-Original-URI`, or the whole URL from the Ingress controller. */
function readOriginal(rawHeaders: readonly string[]): AskedRequest | Refusal {
  const method = onlyValue(rawHeaders, 'x-original-method');
  const uris = fieldValues(rawHeaders, 'x-original-uri');
  const urls = fieldValues(rawHeaders, 'x-original-url').map((url) => url.replace(/^https?:\/\/[^/?#]*/i, ''));
  const [target, ...more] = [...uris, ...urls];
  // If the proxy sends one of them, a client may have sent the other.
  return method === undefined || target === undefined || more.length > 0
    ? missing('X-Original-Method and one of X-Original-URI and X-Original-URL')
    : { method, target };
}

/** Undefined if the field is missing or given more than once. */
function onlyValue(rawHeaders: readonly string[], name: string): string | undefined {
  const [value, ...more] = fieldValues(rawHeaders, name);
  return more.length > 0 ? undefined : value;
}

/**
 * Of the URL that the config of the proxy contains, so that no client can choose it: `cost=2`, and `cost.tokens=800` for a
 * unit. Undefined if it has neither.
 */
function readCost(query: string, units: readonly string[]): Cost | undefined | Refusal {
  const costs = new Map<string, number>();
  for (const [name, text] of new URLSearchParams(query)) {
    const unit = name === 'cost' ? 'requests' : /^cost\.(.+)$/.exec(name)?.[1];
    const value = Number(text);
    const isCost = /^[1-9]\d*$/.test(text) && Number.isSafeInteger(value);
    const isKnown = unit !== undefined && ['requests', ...units].includes(unit);
    if (!isKnown || costs.has(unit) || !isCost) return BAD_QUERY;
    costs.set(unit, value);
  }
  if (costs.size === 0) return undefined;
  return { requests: 1, ...Object.fromEntries(costs) };
}

/** A module of nginx takes any status but 2xx, 401 and 403 for its own error: a 429 would become a 500. */
function forNginx(reply: Reply): Reply {
  const { status, headers, body } = reply;
  if (status < 300) return reply;
  const { 'content-length': _, 'content-type': __, ...fields } = headers;
  const problem = typeof body === 'string' ? { 'x-headgate-problem': inAscii(body) } : {};
  const own = { 'x-headgate-status': String(status), ...problem, 'content-length': '0' };
  return { status: status === 401 ? 401 : 403, headers: { ...fields, ...own }, body: '' };
}

/** JSON that fits into a header field. */
function inAscii(json: string): string {
  return json.replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function missing(fields: string): Refusal {
  return refuse(400, 'errors/malformed_request', `The proxy that asks must send ${fields}, once each.`);
}

const DONE: Reply = { status: 200, headers: FIELDS, body: '' };
const NO_PATH = refuse(
  404,
  'errors/resource_not_found',
  'Proxies ask /decide or /decide/nginx, and refund at /decide/refund.',
);
const NOT_TRUSTED = refuse(
  403,
  'errors/resource_access_restricted',
  'Only the proxies in clientAddress.trustedProxies of the config may ask about requests of others.',
);
const BAD_QUERY = refuse(
  422,
  'errors/unprocessable_entity',
  'The query may have only a cost, and one per unit of the limits as in cost.tokens, once each: whole numbers, at least 1.',
);
