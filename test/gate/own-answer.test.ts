import { describe, expect, expectTypeOf, it, vi } from 'vitest';
import { StoreFullError } from '../../src/base/errors.ts';
import type { AnswerContext, AnswerFunction, GateEntry, GateEvent } from '../../src/gate/index.ts';
import { BodyError, jsonReply, type Reply, readIdempotencyKey } from '../../src/http/index.ts';
import { createGate, createIdempotency, createLimiter, type GateOptions } from '../../src/index.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';

interface Asked {
  readonly account?: string;
  readonly key?: string[];
  readonly fingerprint?: string;
}

const REQUEST: Asked = { account: 'a' };
const OWN: Reply = { status: 418, headers: { 'content-type': 'text/plain' }, body: 'own' };
const FIELDS = {
  'retry-after': '60',
  'x-ratelimit-limit': '1',
  'x-ratelimit-remaining': '0',
  'x-ratelimit-reset': '60',
};

function gateOf(options: Partial<GateOptions<Asked>> = {}) {
  const events: GateEvent[] = [];
  const logger = vi.fn();
  const gate = createGate<Asked>({
    limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['1/1m'] } }),
    account: ({ account }) => account,
    route: () => 'r',
    onEvent: (event) => events.push(event),
    logger,
    ...options,
  });
  return { gate, events, logger };
}

/** The reply to the second request, which the limit rejects. */
async function rejected(options: Partial<GateOptions<Asked>>, id?: string) {
  const all = gateOf(options);
  await all.gate.enter(REQUEST);
  return { ...all, reply: replyOf(await all.gate.enter(REQUEST, id)) };
}

function replyOf(entry: GateEntry): Reply {
  if (entry.kind !== 'answer') throw new Error('the request was let through');
  return entry.reply;
}

const answerWithOwn = () => vi.fn<AnswerFunction<Asked>>(() => OWN);
const textOf = ({ body }: Reply) => (typeof body === 'string' ? body : new TextDecoder().decode(body));

describe('answer', () => {
  it('gets the error object, the request, its id, the fields of the gate, and the decision', async () => {
    const answer = vi.fn<AnswerFunction<Asked>>(() => undefined);
    const { reply } = await rejected({ answer }, 'req_2');
    expect(answer.mock.calls).toEqual([
      [
        JSON.parse(textOf(reply)),
        {
          request: REQUEST,
          requestId: 'req_2',
          headers: { 'cache-control': 'no-store', ...FIELDS },
          decision: expect.objectContaining({ accepted: false, account: 'a', route: 'r' }),
        },
      ],
    ]);
    expect(answer.mock.calls[0]?.[1].request).toBe(REQUEST);
    expectTypeOf(answer).parameter(1).toEqualTypeOf<AnswerContext<Asked>>();
  });

  it('undefined leaves the answer as it is', async () => {
    const { reply } = await rejected({ answer: () => undefined }, 'req_2');
    expect(reply).toEqual((await rejected({}, 'req_2')).reply);
  });

  it('its reply gets the fields that it lacks, and its length', async () => {
    const { reply, logger } = await rejected({ answer: () => OWN });
    expect(reply).toEqual({
      status: 418,
      headers: { 'content-type': 'text/plain', 'content-length': '3', 'cache-control': 'no-store', ...FIELDS },
      body: new TextEncoder().encode('own'),
    });
    expect(logger).not.toHaveBeenCalled();
  });

  it("the reply's own fields win, whatever the case of their names; those that frame a body are the gate's", async () => {
    const headers = {
      'Retry-After': '7',
      'CACHE-CONTROL': 'max-age=1',
      'X-RateLimit-Limit': '5',
      'Content-Length': '99',
      'transfer-encoding': 'chunked',
      Connection: 'close',
      'Set-Cookie': ['a=1', 'b=2'],
      ...Object.fromEntries([['__proto__', 'x']]),
    };
    const { reply } = await rejected({ answer: () => ({ status: 200, headers, body: 'ü' }) });
    expect(new Map(Object.entries(reply.headers))).toEqual(
      new Map<string, unknown>([
        ['cache-control', 'max-age=1'],
        ['x-ratelimit-limit', '5'],
        ['x-ratelimit-remaining', '0'],
        ['x-ratelimit-reset', '60'],
        ['retry-after', '7'],
        ['content-length', '2'],
        ['set-cookie', ['a=1', 'b=2']],
        ['__proto__', 'x'],
      ]),
    );
  });

  it('a status without a body has no length', async () => {
    const { reply } = await rejected({ answer: () => ({ status: 204, headers: {}, body: '' }) });
    expect([reply.status, 'content-length' in reply.headers]).toEqual([204, false]);
  });

  it.each<[string, number, Partial<GateOptions<Asked>>]>([
    ['a body that is too long', 413, { account: () => Promise.reject(new BodyError(413, 'too_large', 'too long')) }],
    ['a resolver that fails', 500, { route: () => Promise.reject(new Error('boom')) }],
    [
      'a store that is full',
      503,
      {
        limiter: createLimiter({
          limits: { allMethods: ['1/1m'] },
          store: Object.assign(createMemoryStore(), {
            consume: () => {
              throw new StoreFullError(1);
            },
          }),
        }),
      },
    ],
  ])('answers %s (%i)', async (_, status, options) => {
    const answer = answerWithOwn();
    const { gate } = gateOf({ ...options, answer });
    expect(replyOf(await gate.enter(REQUEST)).status).toBe(418);
    expect(answer.mock.calls).toMatchObject([[{ status }, { request: REQUEST, decision: undefined }]]);
  });

  it('I1, I2: answers a bad key and a key that belongs to another request, and never a replay', async () => {
    const answer = answerWithOwn();
    const { gate } = gateOf({
      answer,
      idempotency: createIdempotency({ store: createMemoryClaimStore() }),
      idempotent: ({ key = [], fingerprint = 'f' }) => {
        const read = readIdempotencyKey(key);
        return typeof read === 'string'
          ? { key: read, scope: 's', fingerprint: { value: fingerprint, labels: [] } }
          : read;
      },
    });
    const ask = async (key: string[], fingerprint = 'f') => gate.enter({ ...REQUEST, key, fingerprint });
    const entry = await ask(['k']);
    if (entry.kind !== 'proceed') throw new Error('the request was answered');
    await entry.recording?.store({ status: 201, fields: [], body: new TextEncoder().encode('made') });
    entry.settle({ status: 201 });
    const replies = [await ask(['k']), await ask(['k'], 'other'), await ask(['k', 'l']), await ask(['m'])].map(replyOf);
    expect(replies.map(({ status }) => status)).toEqual([201, 418, 418, 418]);
    expect(answer.mock.calls.map(([{ status }]) => status)).toEqual([409, 422, 429]);
  });

  it('I7: answers a retry whose response was too long to be stored', async () => {
    const answer = answerWithOwn();
    const { gate } = gateOf({
      answer,
      idempotency: createIdempotency({ store: createMemoryClaimStore(), maxKeptBytes: 1 }),
      idempotent: () => ({ key: 'k', scope: 's', fingerprint: { value: 'f', labels: [] } }),
    });
    const entry = await gate.enter(REQUEST);
    if (entry.kind !== 'proceed') throw new Error('the request was answered');
    await entry.recording?.store({ status: 201, fields: [], body: new TextEncoder().encode('made') });
    expect(replyOf(await gate.enter(REQUEST)).status).toBe(418);
    expect(answer.mock.calls.map(([{ type }]) => type)).toEqual(['errors/already_used']);
  });

  it('of a route replaces that of its gate; a route without one has that of its gate', async () => {
    const { gate } = gateOf({ answer: () => OWN });
    await gate.enter(REQUEST);
    const answers = [gate.with({ answer: ({ status }) => jsonReply(status, 'route') }), gate.with({ cost: 1 })];
    const replies = await Promise.all(answers.map(async (one) => replyOf(await one.enter(REQUEST))));
    expect(replies.map(textOf)).toEqual(['"route"', 'own']);
  });
});

describe('an answer that fails', () => {
  const boom = new Error('boom');
  it.each<[string, () => unknown, string]>([
    [
      'throws',
      () => {
        throw boom;
      },
      'boom',
    ],
    ['returns a promise', async () => OWN, 'answer(): must return a reply or undefined, and no promise, got a promise'],
    ['returns a promise that rejects', async () => Promise.reject(boom), 'answer(): must return a reply'],
    ['returns text', () => 'slow down', 'answer(): must return a reply or undefined, and no promise, got "slow down"'],
    ['returns null', () => null, 'answer(): must return a reply'],
    ['returns a Response', () => new Response('x'), 'answer(): must be a plain object'],
    [
      'returns an object as a body',
      () => ({ ...OWN, body: { a: 1 } }),
      'answer().body: must be a string, a Uint8Array',
    ],
    ['returns a status of text', () => ({ ...OWN, status: '429' }), 'answer().status: must be a whole number'],
    ['returns a status below 200', () => ({ ...OWN, status: 101 }), 'answer().status: must be a whole number'],
    ['returns a status beyond 599', () => ({ ...OWN, status: 999 }), 'answer().status: must be a whole number'],
    ['returns a body with 204', () => ({ ...OWN, status: 204 }), 'answer().body: must be empty with status 204'],
    ['returns no headers', () => ({ ...OWN, headers: null }), 'answer().headers: must be a plain object'],
    ['returns a bad name', () => ({ ...OWN, headers: { 'a b': '1' } }), 'answer().headers: every name must be a token'],
    [
      'returns a line break',
      () => ({ ...OWN, headers: { a: 'x\r\nb: 1' } }),
      'answer().headers["a"]: must be a string',
    ],
    ['returns a number as a field', () => ({ ...OWN, headers: { a: 1 } }), 'answer().headers["a"]: must be a string'],
  ])("%s: the failure is logged, and the answer is the gate's", async (_, answer, message) => {
    const unhandled: unknown[] = [];
    const listen = (error: unknown) => unhandled.push(error);
    process.on('unhandledRejection', listen);
    const { reply, events, logger } = await rejected({ answer: answer as never }, 'req_2');
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', listen);
    expect(reply).toEqual((await rejected({}, 'req_2')).reply);
    expect(logger.mock.calls).toEqual([['headgate: answer failed (req_id req_2)', expect.any(Error)]]);
    expect(logger.mock.calls[0]?.[1].message).toContain(message);
    expect(events.at(-1)).toMatchObject({ type: 'failure', stage: 'answer', requestId: 'req_2' });
    expect(unhandled).toEqual([]);
  });

  it.each([null, 'page', { status: 429 }])('answer cannot be %j', (wrong) => {
    expect(() => gateOf({ answer: wrong as never })).toThrow(/^answer: must be a function, got /);
    expect(() => gateOf().gate.with({ answer: wrong as never })).toThrow(/^answer: must be a function, got /);
  });
});
