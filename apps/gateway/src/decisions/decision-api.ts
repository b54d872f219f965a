import type { GateAnswer, GateEntry, Passage } from 'headgate/gate';
import { jsonReply } from 'headgate/http';
import type { MaybePromise } from 'headgate/stores';
import { z } from 'zod';
import { refusalOfHead, tokenOf } from '../admission/admission.ts';
import type { Keys } from '../admission/keys.ts';
import type { Shares } from '../admission/shares.ts';
import { isOutage, MAX_BODY_BYTES, OUTAGE, readBody } from '../api/input.ts';
import { createDocument, type DocumentedApi } from '../api/openapi.ts';
import type { DescribedOperation } from '../api/operation.ts';
import { stateOf } from '../api/window-state.ts';
import { refusalReply, sendReply } from '../exchange/answers.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { isRefusal, type Refusal, refuse } from '../exchange/refusal.ts';
import type { Rules } from '../server/rules.ts';
import { handleOf } from './claim-handle.ts';
import { textOf } from './claim-operations.ts';
import type { DecisionAnswer } from './limit-operations.ts';
import { type DecisionOperation, isEntry } from './operation.ts';
import { receiptOf } from './receipt.ts';

/** Options of {@link createDecisionApi}. */
export interface DecisionApiOptions {
  readonly operations: readonly DecisionOperation[];
  readonly keys: Keys;
  readonly shares: Shares;
}

/** A request that was admitted. */
type Run = () => MaybePromise<unknown>;

const FIELDS = { 'cache-control': 'no-store' };

/**
 * The decision API: JSON for programs that forward requests themselves. Its stages: head (400), path (404), method (405),
 * key (401), shares of the application (503), body (400, 413, 415, 422), and then the operation.
 */
export function createDecisionApi({ operations, keys, shares }: DecisionApiOptions): Rules {
  const document = createDocument([...operations, DOCUMENT], API);
  const byPath = new Map(operations.map((operation) => [operation.path, operation]));
  const running = new WeakMap<Exchange, Run>();

  const readInput = async (exchange: Exchange, operation: DecisionOperation, run: (body: unknown) => unknown) => {
    const body = await readBody(operation.body, exchange.request, {
      maxBytes: operation.maxBodyBytes ?? MAX_BODY_BYTES,
      add: (bytes) => exchange.buffer?.add(bytes) ?? true,
    });
    if (isRefusal(body)) return body;
    running.set(exchange, () => run(body));
    return undefined;
  };
  const admit = (exchange: Exchange): MaybePromise<Refusal | undefined> => {
    const malformed = refusalOfHead(exchange);
    if (malformed !== undefined) return malformed;
    const [path = ''] = exchange.target.split('?', 1);
    const operation = byPath.get(path);
    const { method } = operation ?? (path === DOCUMENT.path ? DOCUMENT : {});
    if (method === undefined) return NO_PATH;
    if (method !== exchange.method) {
      const refusal = refuse(405, 'errors/method_not_allowed', `This path has only ${method}.`);
      const reply = refusalReply(refusal, exchange.id, { allow: method });
      running.set(exchange, () => ({ kind: 'answer', reply }));
      return undefined;
    }
    if (operation === undefined) {
      running.set(exchange, () => document);
      return undefined;
    }
    const key = keys.authenticate(tokenOf(exchange.request));
    if (isRefusal(key)) return key;
    exchange.application = key.application;
    const refusal = shares.enter(exchange, key.application);
    return refusal ?? readInput(exchange, operation, (body) => operation.run(body, { key, exchange }));
  };
  const enter = async (exchange: Exchange): Promise<GateEntry> => {
    try {
      const result = await running.get(exchange)?.();
      if (isEntry(result)) return result.kind === 'answer' && result.replayed === true ? wrapped(result) : result;
      return {
        kind: 'answer',
        reply: isRefusal(result) ? refusalReply(result, exchange.id) : jsonReply(200, result, FIELDS),
      };
    } catch (error) {
      if (!isOutage(error)) throw error;
      return { kind: 'answer', reply: refusalReply(OUTAGE, exchange.id) };
    }
  };
  return {
    prepare(exchange) {
      exchange.door = 'json';
      return undefined;
    },
    admit,
    gate: { enter },
    forward(exchange, passage) {
      const { headers } = passage.settle({ status: 200 });
      // Nobody says when the request of the caller ends.
      void passage.end?.();
      sendReply(exchange, jsonReply(200, answerOf(exchange, passage), { ...FIELDS, ...headers }));
    },
  };
}

/** The answer to an accepted request. The caller owns its claim from now on. */
function answerOf({ route, idempotent }: Exchange, { decision, recording }: Passage): DecisionAnswer {
  const claim = recording?.claim;
  claim?.leave();
  return {
    outcome: decision === undefined ? 'unlimited' : 'accepted',
    degraded: decision?.degraded === true,
    windows: decision === undefined || decision.degraded ? [] : decision.trace.map(stateOf),
    claim: claim === undefined ? null : handleOf({ ...pick(claim), route: route?.name ?? '' }, claim.fingerprint),
    receipt: receiptOf(decision) ?? null,
    leaseMs: claim === undefined ? null : (idempotent?.request.leaseMs ?? null),
    response: null,
  };
}

function pick({ key, generation }: { readonly key: string; readonly generation: number }) {
  return { key, generation };
}

/** A stored response is the client's, so the caller gets it within its own answer. */
function wrapped({ reply: { status, headers, body } }: GateAnswer): GateAnswer {
  const fields = Object.entries(headers)
    .filter(([name]) => name !== 'content-length')
    .flatMap(([name, value]) => [value].flat().map((one) => ({ name, value: one })));
  const text = typeof body === 'string' ? { body, encoding: 'utf-8' as const } : textOf(body);
  const answer: DecisionAnswer = {
    outcome: 'replayed',
    degraded: false,
    windows: [],
    claim: null,
    receipt: null,
    leaseMs: null,
    response: { status, headers: fields, ...text },
  };
  return { kind: 'answer', replayed: true, reply: jsonReply(200, answer, FIELDS) };
}

const NO_PATH = refuse(404, 'errors/resource_not_found', 'The decision API has no such path.');

const DOCUMENT: DescribedOperation = {
  id: 'getDocument',
  method: 'GET',
  path: '/v1/openapi.json',
  role: 'none',
  tag: 'Document',
  summary: 'This document',
  answer: z.record(z.string(), z.unknown()),
};

const count = (description: string) => ({ description, schema: { type: 'integer', minimum: 0 } });
const text = (description: string) => ({ description, schema: { type: 'string' } });

const API: DocumentedApi = {
  title: 'headgate decision API',
  description:
    'Decides for programs that forward requests themselves. Every request needs an API key of `keys` in the config, and reaches only what belongs to its application. Spans have their unit in their names.',
  securitySchemes: {
    bearer: { type: 'http', scheme: 'bearer' },
    header: { type: 'apiKey', in: 'header', name: 'X-API-KEY' },
  },
  security: [{ bearer: [] }, { header: [] }],
  fields: {
    'x-ratelimit-limit': count('`max` of the window that is shown'),
    'x-ratelimit-remaining': count('The rest of this window'),
    'x-ratelimit-reset': count('After how many seconds it is over'),
    ratelimit: text('Every window, as the IETF draft writes it'),
    'ratelimit-policy': text('The limits of every window, as the IETF draft writes them'),
    'retry-after': count('After how many seconds a retry makes sense. Absent if the store is away'),
    'idempotency-status': text('`bypassed`: the store is away, and the key does not protect the request'),
  },
};
