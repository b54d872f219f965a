import { afterEach, describe, expect, it } from 'vitest';
import type { GateEntry, Passage } from '../../src/gate/gate.ts';
import type { GateEvent, IdempotentRequest } from '../../src/gate/index.ts';
import type { CapturedResponse, ResponseRecording } from '../../src/gate/recording.ts';
import { BodyError } from '../../src/http/body-error.ts';
import { fingerprint } from '../../src/http/fingerprint/fingerprint.ts';
import type { KeyFault } from '../../src/http/idempotency-key.ts';
import { createGate, createLimiter, type GateOptions, type IdempotencyOptions } from '../../src/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import type { LimitStore } from '../../src/stores.ts';
import { settled } from '../support/fake-timers.ts';
import { createWorld, type Gateway, type World } from '../support/idempotency.ts';

interface Request {
  readonly key?: string;
  readonly scope?: string;
  readonly body?: string;
  readonly account?: string;
}

const fingerprintOf = ({ body = '{"a":1}', account = 'a' }: Request) =>
  fingerprint({
    method: 'POST',
    path: '/',
    account,
    contentType: 'application/json',
    body: (async function* () {
      yield Buffer.from(body);
    })(),
  });

async function keyed(request: Request, more: Partial<IdempotentRequest> = {}): Promise<IdempotentRequest | undefined> {
  const { key, scope = 'app_1' } = request;
  return key === undefined ? undefined : { scope, key, fingerprint: await fingerprintOf(request), ...more };
}

const gateways: (Gateway & { readonly world: World })[] = [];
afterEach(async () => {
  for (const { idempotency, line, world } of gateways.splice(0)) {
    line.always = 'ok';
    line.deliver();
    // No test may leave a held claim behind.
    expect(idempotency.held).toBe(0);
    const closing = idempotency.close({ timeoutMs: 0 });
    await world.timers.advance(1);
    await closing;
  }
});

interface Setting {
  readonly world?: World;
  readonly idempotency?: Partial<IdempotencyOptions>;
  readonly gate?: Partial<GateOptions<Request>>;
  readonly store?: LimitStore;
  readonly allMethods?: string[];
}

function gateOf({
  world = createWorld(),
  idempotency = {},
  gate: options = {},
  store,
  allMethods = ['5/1m'],
}: Setting = {}) {
  const gateway = world.gateway(idempotency);
  gateways.push({ ...gateway, world });
  const events: GateEvent[] = [];
  const order: string[] = [];
  const record = <T>(stage: string, value: T): T => {
    order.push(stage);
    return value;
  };
  const limiter = createLimiter({ store: store ?? createMemoryStore({ clock: world.timers }), limits: { allMethods } });
  const gate = createGate<Request>({
    limiter,
    idempotency: gateway.idempotency,
    account: ({ account = 'a' }) => record('account', account),
    route: () => 'r',
    cached: () => record('cached', false),
    idempotent: (request) => record('idempotent', keyed(request)),
    onEvent: (event) => events.push(event),
    logger: false,
    ...options,
  });
  const left = async () => (await limiter.peek({ account: 'a', route: 'r' }))[0]?.remaining;
  const outcomes = () => events.flatMap((event) => (event.type === 'idempotency' ? [event.outcome] : []));
  const { idempotency: engine, line } = gateway;
  return { gate, limiter, events, order, left, outcomes, world, idempotency: engine, line };
}

function passage(entry: GateEntry): Passage & { recording: ResponseRecording } {
  if (entry.kind !== 'proceed') throw new Error(`answered ${entry.reply.status}: ${entry.reply.body}`);
  if (entry.recording === undefined) throw new Error('the passage has no recording');
  return entry as Passage & { recording: ResponseRecording };
}

function answer(entry: GateEntry) {
  if (entry.kind !== 'answer') throw new Error('the request was let through');
  const { status, headers, body } = entry.reply;
  return { status, headers, text: Buffer.from(body as Uint8Array).toString() };
}

function problem(entry: GateEntry) {
  const { status, headers, text } = answer(entry);
  return { headers, ...JSON.parse(text), status };
}

const REQUEST: Request = { key: 'k' };
const SENT: CapturedResponse = {
  status: 201,
  fields: ['content-type', 'text/plain', 'x-id', '7'],
  body: Buffer.from('sent'),
};

/** Enters the gate, and responds like a handler. */
async function serve(gate: ReturnType<typeof gateOf>['gate'], response = SENT, request = REQUEST) {
  const entered = passage(await gate.enter(request));
  entered.settle({ status: response.status });
  return entered.recording.store(response);
}

describe('the order of the stages', () => {
  it('idempotency comes before cache and limits; a request without a key continues', async () => {
    const { gate, order, line } = gateOf();
    await serve(gate);
    expect(order).toEqual(['account', 'idempotent', 'cached']);
    expect(line.sent).toEqual(['begin', 'dispatch', 'complete']);
    const unkeyed = await gate.enter({});
    expect(unkeyed).toMatchObject({ kind: 'proceed', recording: undefined });
  });

  it('I6: the claim is dispatched only after every stage before the handler has accepted the request', async () => {
    const { gate, line } = gateOf({ allMethods: ['0/1m'] });
    expect(problem(await gate.enter(REQUEST)).status).toBe(422);
    expect(line.sent).toEqual(['begin', 'abandon']);
  });

  it('I1, I13: an invalid key or body is rejected before anything is claimed or charged', async () => {
    const faults: [() => Promise<KeyFault>, number, string][] = [
      [async () => ({ detail: 'two keys' }), 422, 'errors/unprocessable_entity'],
      [() => Promise.reject(new BodyError(413, 'too_large', 'too long')), 413, 'errors/payload_too_large'],
      [() => Promise.reject(new BodyError(400, 'aborted', 'broke off')), 400, 'errors/malformed_request'],
      [() => Promise.reject(new BodyError(408, 'stalled', 'stalled')), 408, 'errors/request_timeout'],
      [() => Promise.reject(new BodyError(422, 'malformed_multipart', 'bad')), 422, 'errors/unprocessable_entity'],
      [() => Promise.reject(new BodyError(503, 'no_storage', 'full')), 503, 'errors/service_unavailable'],
    ];
    for (const [idempotent, status, type] of faults) {
      const { gate, line, events, left } = gateOf({ gate: { idempotent } });
      expect(problem(await gate.enter(REQUEST, 'req-1'))).toMatchObject({ status, type, req_id: 'req-1' });
      expect([line.sent, events, await left()]).toEqual([[], [], 5]);
    }
  });

  it('I1: a gate that requires a key refuses a request without one, and charges nothing', async () => {
    const { gate, line, events, left } = gateOf({ gate: { requireKey: true } });
    expect(problem(await gate.enter({}, 'req-1'))).toMatchObject({
      status: 400,
      type: 'errors/missing_idempotency_key',
      detail: expect.stringContaining('Idempotency-Key'),
      req_id: 'req-1',
    });
    expect([line.sent, events, await left()]).toEqual([[], [], 5]);
    expect(await serve(gate)).toBeUndefined();
  });

  it('I1: one route requires a key, or ignores the key that its gate requires', async () => {
    const optional = gateOf().gate;
    expect(problem(await optional.with({ requireKey: true }).enter({})).status).toBe(400);
    const required = gateOf({ gate: { requireKey: true } }).gate;
    expect((await required.with({ requireKey: false }).enter({})).kind).toBe('proceed');
    expect((await required.with({ idempotent: false }).enter({})).kind).toBe('proceed');
  });

  it('requireKey is a boolean, and needs a key that is read', () => {
    expect(() => gateOf({ gate: { requireKey: 'yes' as never } })).toThrow('requireKey: must be true or false');
    const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['1/1m'] } });
    const noKeys = { limiter, account: () => 'a', route: () => 'r', requireKey: true };
    expect(() => createGate(noKeys)).toThrow('requireKey: needs idempotency and idempotent');
  });

  it('a failing resolver is a fault of the program: 500, never 503', async () => {
    for (const error of [new Error('boom'), new BodyError(500, 'already_read', 'read')]) {
      for (const idempotent of [
        () => Promise.reject(error),
        () => {
          throw error;
        },
      ]) {
        const { gate, events, left } = gateOf({ gate: { idempotent } });
        expect(problem(await gate.enter(REQUEST))).toMatchObject({ status: 500, type: 'errors/unexpected_error' });
        expect(events).toMatchObject([{ type: 'failure', stage: 'idempotent' }]);
        expect(await left()).toBe(5);
      }
    }
  });

  it('a claim is released if a later stage fails', async () => {
    const { gate, line } = gateOf({
      gate: {
        route: () => {
          throw new Error('boom');
        },
      },
    });
    expect(problem(await gate.enter(REQUEST)).status).toBe(500);
    expect(line.sent).toEqual(['begin', 'abandon']);
  });

  it('I2: the account is resolved once, before the claim; if that fails, nothing is claimed', async () => {
    const failures: [() => unknown, number, string | undefined][] = [
      [() => Promise.reject(new BodyError(422, 'field_missing', 'no account_id')), 422, undefined],
      [() => Promise.reject(new Error('boom')), 500, 'account'],
      [() => 7, 500, 'account'],
      [() => null, 500, 'account'],
    ];
    for (const [account, status, stage] of failures) {
      const computed = await fingerprintOf({});
      const idempotent = async (request: Request) => ({
        ...(await keyed(request)),
        scope: 's',
        key: 'k',
        fingerprint: () => computed,
      });
      const { gate, line, events } = gateOf({ gate: { account: account as () => string, idempotent } });
      expect(problem(await gate.enter(REQUEST)).status).toBe(status);
      expect([line.sent, events]).toMatchObject([[], stage === undefined ? [] : [{ type: 'failure', stage }]]);
    }
  });
});

describe('I2: the account is part of the fingerprint', () => {
  const byAccount: GateOptions<Request>['idempotent'] = async ({ key = '' }) => {
    const fingerprints = { a: await fingerprintOf({ account: 'a' }), b: await fingerprintOf({ account: 'b' }) };
    return { scope: 's', key, fingerprint: (account) => fingerprints[account as 'a' | 'b'] };
  };

  it('a fingerprint function receives the account: one account cannot get the response of another', async () => {
    const { gate, order, left } = gateOf({ gate: { idempotent: byAccount } });
    await serve(gate);
    expect(order.filter((stage) => stage === 'account')).toHaveLength(1);
    const other = problem(await gate.enter({ key: 'k', account: 'b' }));
    expect([other.status, other.detail]).toEqual([409, expect.stringContaining('the account differs')]);
    expect(answer(await gate.enter(REQUEST)).text).toBe('sent');
    expect(await left()).toBe(4);
  });

  it('a fingerprint function may be asynchronous, like fingerprint() of headgate/http', async () => {
    const idempotent = ({ key = '' }) => ({
      scope: 's',
      key,
      fingerprint: (account: string | undefined) => fingerprintOf({ account: String(account) }),
    });
    const { gate } = gateOf({ gate: { idempotent } });
    await serve(gate);
    expect(problem(await gate.enter({ key: 'k', account: 'b' })).detail).toMatch('the account differs');
    expect(answer(await gate.enter(REQUEST)).text).toBe('sent');
  });

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('boom');
      },
    ],
    ['rejects', () => Promise.reject(new Error('boom'))],
    ['returns undefined', () => undefined],
    ['returns an invalid value', () => ({ value: 7 })],
  ])(
    'a fingerprint function that %s is a failure of the idempotent resolver: nothing is claimed',
    async (_how, fingerprint) => {
      const idempotent = async () => ({ scope: 's', key: 'k', fingerprint: fingerprint as never });
      const { gate, line, events } = gateOf({ gate: { idempotent } });
      expect(problem(await gate.enter(REQUEST)).status).toBe(500);
      expect([line.sent, events]).toMatchObject([[], [{ type: 'failure', stage: 'idempotent' }]]);
    },
  );

  it('an invalid setting is a failure of the idempotent resolver', async () => {
    const idempotent = async (request: Request) => keyed(request, { waitMs: -1 });
    const { gate, events } = gateOf({ gate: { idempotent } });
    expect(problem(await gate.enter(REQUEST)).status).toBe(500);
    expect(events).toMatchObject([{ type: 'failure', stage: 'idempotent', error: { code: 'invalid_option' } }]);
  });
});

describe('I4: replays', () => {
  it('have the status, headers and body of the original and a mark; are not charged, and carry no rate-limit headers', async () => {
    const { gate, left, outcomes } = gateOf();
    expect(await serve(gate)).toBeUndefined();
    const replay = answer(await gate.enter(REQUEST));
    expect(replay).toEqual({
      status: 201,
      headers: { 'content-type': 'text/plain', 'x-id': '7', 'content-length': '4', 'Idempotency-Replayed': 'true' },
      text: 'sent',
    });
    expect(await left()).toBe(4);
    expect(outcomes()).toEqual(['claimed', 'replayed']);
  });

  it('I6: every status is replayed, also 5xx, except a 429 of the provider', async () => {
    for (const status of [200, 302, 400, 404, 500, 503]) {
      const { gate } = gateOf();
      await serve(gate, { ...SENT, status });
      expect(answer(await gate.enter(REQUEST)).status).toBe(status);
    }
    const { gate, left } = gateOf();
    await serve(gate, { ...SENT, status: 429 });
    // S16: the request was forwarded, so it remains charged.
    expect(await left()).toBe(4);
    passage(await gate.enter(REQUEST)).abandon();
    await settled();
  });

  it('I6: isOutcome decides which statuses are outcomes', async () => {
    const { gate } = gateOf({ gate: { isOutcome: (status) => status < 500 } });
    await serve(gate, { ...SENT, status: 503 });
    await serve(gate, { ...SENT, status: 200 });
    expect(answer(await gate.enter(REQUEST)).status).toBe(200);
  });

  it('headers of the moment, the connection or the session are never stored; keepsField can only exclude more', async () => {
    const fields = [
      'Set-Cookie',
      'a',
      'DATE',
      'x',
      'X-RateLimit-Limit',
      '5',
      'Retry-After',
      '1',
      'x-a',
      '1',
      'X-B',
      '2',
      'X-B',
      '3',
    ];
    const { gate } = gateOf({ gate: { keepsField: (name) => name !== 'x-a' } });
    await serve(gate, { ...SENT, fields });
    expect(answer(await gate.enter(REQUEST)).headers).toEqual({
      'X-B': ['2', '3'],
      'content-length': '4',
      'Idempotency-Replayed': 'true',
    });
  });

  it('a 204 has no content-length', async () => {
    const { gate } = gateOf();
    await serve(gate, { status: 204, fields: [], body: new Uint8Array(0) });
    expect(answer(await gate.enter(REQUEST))).toEqual({
      status: 204,
      headers: { 'Idempotency-Replayed': 'true' },
      text: '',
    });
  });

  it('I7: a body over maxKeptBytes is not stored, a body of exactly that length is', async () => {
    const { gate, outcomes } = gateOf({ idempotency: { maxKeptBytes: 4 } });
    const other = passage(await gate.enter({ key: 'other' }));
    expect(other.recording.maxBytes).toBe(4);
    await serve(gate);
    expect(answer(await gate.enter(REQUEST)).text).toBe('sent');
    for (const [key, body] of [
      ['long', Buffer.from('sents')],
      ['broken', undefined],
    ] as const) {
      await serve(gate, { ...SENT, body }, { key });
      const conflict = problem(await gate.enter({ key }));
      expect(conflict).toMatchObject({ status: 409, type: 'errors/already_used' });
      expect(conflict.detail).toMatch(/completed with status 201/);
      expect(conflict.headers['retry-after']).toBeUndefined();
      expect(outcomes().at(-1)).toBe('not_kept');
    }
    await other.abandon();
  });
});

describe('I2: the key of another request', () => {
  it('is 409 at once; the detail names what differs, using only the new request; nothing is charged', async () => {
    const { gate, left } = gateOf();
    const running = passage(await gate.enter(REQUEST));
    const conflict = problem(await gate.enter({ ...REQUEST, body: '{"a":2}' }));
    expect(conflict).toMatchObject({ status: 409, type: 'errors/already_used' });
    expect(conflict.detail).toMatch(/another request: a differs/);
    expect(problem(await gate.enter({ ...REQUEST, account: 'b' })).detail).toMatch(/the account differs/);
    await running.recording.store(SENT);
    expect(problem(await gate.enter({ ...REQUEST, body: '{"a":2}' })).type).toBe('errors/already_used');
    expect(await left()).toBe(4);
  });

  it('the key of another application is another key', async () => {
    const { gate } = gateOf();
    await serve(gate);
    await serve(gate, SENT, { ...REQUEST, scope: 'app_2', body: '{"a":2}' });
  });
});

describe('I5: while the original runs', () => {
  it('a duplicate waits, and gets the response of the original', async () => {
    const { gate, left } = gateOf();
    const running = passage(await gate.enter(REQUEST));
    const duplicate = gate.enter(REQUEST);
    await settled();
    await running.recording.store(SENT);
    expect(answer(await duplicate).text).toBe('sent');
    expect(await left()).toBe(4);
  });

  it('after waitMs it is 409 errors/conflict with retry-after', async () => {
    const { gate, world } = gateOf({ idempotency: { waitMs: 1_000 } });
    const running = passage(await gate.enter(REQUEST));
    const duplicate = gate.enter(REQUEST);
    await settled();
    await world.timers.advance(1_000);
    const conflict = problem(await duplicate);
    expect(conflict).toMatchObject({ status: 409, type: 'errors/conflict', req_id: expect.any(String) });
    expect(Number(conflict.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    await running.abandon();
  });

  it('a duplicate whose client disconnects stops waiting', async () => {
    const gone = new AbortController();
    const { gate, outcomes } = gateOf({ gate: { idempotent: (request) => keyed(request, { signal: gone.signal }) } });
    const running = passage(await gate.enter(REQUEST));
    const duplicate = gate.enter(REQUEST);
    await settled();
    gone.abort();
    expect(problem(await duplicate)).toMatchObject({ status: 409, type: 'errors/conflict' });
    expect(outcomes()).toEqual(['claimed', 'aborted']);
    await running.abandon();
  });
});

describe('I6: requests that never reached the handler', () => {
  it('our own 429 releases the key before the client gets it, and the same key works later', async () => {
    const { gate, line, world } = gateOf({ allMethods: ['1/1m'] });
    await serve(gate, SENT, { key: 'first' });
    line.sent.length = 0;
    line.next('abandon', 'hung');
    let rejected: GateEntry | undefined;
    const entering = Promise.resolve(gate.enter(REQUEST)).then((entry) => {
      rejected = entry;
    });
    await settled();
    expect([line.sent, rejected]).toEqual([['begin', 'abandon'], undefined]);
    line.deliver();
    await entering;
    expect(problem(rejected as unknown as GateEntry)).toMatchObject({ status: 429, headers: { 'retry-after': '60' } });
    await world.timers.advance(60_000);
    await serve(gate);
  });

  it('an abandoned passage refunds the charge and releases the claim, once; its response is not stored', async () => {
    const { gate, left, line } = gateOf();
    const entered = passage(await gate.enter(REQUEST));
    await entered.abandon();
    await entered.abandon();
    expect(await entered.recording.store(SENT)).toBeUndefined();
    expect([await left(), line.sent]).toEqual([5, ['begin', 'dispatch', 'abandon']]);
    await serve(gate);
  });
});

describe('I9, I10: owners that die, stall or complete second', () => {
  /** Another process that claimed, dispatched and died. */
  async function orphaned(world: World) {
    const dead = world.gateway();
    const { value } = await fingerprintOf(REQUEST);
    const opened = await dead.idempotency.open({
      scope: 'app_1',
      key: 'k',
      fingerprint: value,
      dispatch: 'explicit',
    });
    if (opened.kind !== 'claimed') throw new Error(opened.kind);
    await opened.claim.dispatch();
    opened.claim.leave();
    await world.timers.advance(30_001);
  }

  it('reject: an orphan is 409 errors/conflict without retry-after, and charges nothing', async () => {
    const world = createWorld();
    await orphaned(world);
    const { gate, left, outcomes } = gateOf({ world });
    const conflict = problem(await gate.enter(REQUEST));
    expect(conflict).toMatchObject({ status: 409, type: 'errors/conflict' });
    expect([conflict.headers['retry-after'], await left(), outcomes()]).toEqual([undefined, 5, ['orphan']]);
  });

  it('reexecute: the retry executes, and the client gets nothing before the outcome is stored', async () => {
    const world = createWorld();
    await orphaned(world);
    const { gate } = gateOf({ world, idempotency: { onOrphan: 'reexecute' } });
    const entered = passage(await gate.enter(REQUEST));
    expect(entered.recording.storeBeforeSending).toBe(true);
    await entered.recording.store(SENT);
  });

  it('reconcile: the result that the provider knows is replayed', async () => {
    const world = createWorld();
    await orphaned(world);
    const result = { status: '201', value: '[1,201,["x-id","7"]]\ntsent' };
    const reconcile = async () => ({ done: true, result }) as const;
    const { gate } = gateOf({
      world,
      gate: { idempotent: (request) => keyed(request, { onOrphan: 'reconcile', reconcile }) },
    });
    expect(answer(await gate.enter(REQUEST)).text).toBe('sent');
  });

  it('reject: the response may be sent before it is stored', async () => {
    const { gate } = gateOf();
    const entered = passage(await gate.enter(REQUEST));
    expect(entered.recording.storeBeforeSending).toBe(false);
    await entered.recording.store(SENT);
  });

  it('P2: an owner that completes second returns the first outcome, never its own', async () => {
    const { gate, idempotency } = gateOf({ idempotency: { onOrphan: 'reexecute' } });
    const entered = passage(await gate.enter(REQUEST));
    await idempotency.completeWith({ scope: 'app_1', key: 'k' }, { status: '200', value: '[1,200,[]]\ntwon' });
    const instead = await entered.recording.store(SENT);
    expect([instead?.status, Buffer.from(instead?.body as Uint8Array).toString()]).toEqual([200, 'won']);
  });

  it('P2: if the first outcome has no stored body, the second owner returns 409 errors/already_used', async () => {
    const { gate, idempotency } = gateOf();
    const entered = passage(await gate.enter(REQUEST));
    await idempotency.completeWith({ scope: 'app_1', key: 'k' }, { status: '200', value: undefined });
    expect((await entered.recording.store(SENT))?.status).toBe(409);
  });

  it('a stored value in an unknown format is not replayed', async () => {
    const { gate, idempotency } = gateOf();
    const entered = passage(await gate.enter(REQUEST));
    await idempotency.completeWith({ scope: 'app_1', key: 'k' }, { status: '200', value: 'garbage' });
    expect((await entered.recording.store(SENT))?.status).toBe(409);
  });
});

describe('I12: the store is unavailable', () => {
  it('refuse: 503 without rate-limit headers, nothing charged, and a failure event', async () => {
    const { gate, line, left, events } = gateOf();
    line.always = 'lost';
    const conflict = problem(await gate.enter(REQUEST));
    expect(conflict).toMatchObject({ status: 503, type: 'errors/service_unavailable' });
    expect(Object.keys(conflict.headers)).toEqual(['content-type', 'content-length', 'cache-control']);
    expect(events).toMatchObject([{ type: 'failure', stage: 'idempotency' }]);
    expect(await left()).toBe(5);
  });

  it('unavailable at dispatch: 503, the charge is refunded, and the claim is released later', async () => {
    const { gate, line, left, idempotency, world } = gateOf();
    line.next('dispatch', 'lost', 'lost');
    expect(problem(await gate.enter(REQUEST)).status).toBe(503);
    expect(await left()).toBe(5);
    await world.timers.advance(5_000);
    expect([line.sent.at(-1), idempotency.pending]).toEqual(['abandon', 0]);
    await serve(gate);
  });

  it('bypass: the request continues without protection, with a mark in its headers, and nothing is stored', async () => {
    const { gate, line, outcomes } = gateOf({
      idempotency: { onStoreFailure: 'bypass' },
      gate: { providerAnswers: true },
    });
    line.always = 'lost';
    const entry = await gate.enter(REQUEST);
    expect(entry).toMatchObject({
      kind: 'proceed',
      recording: undefined,
      headers: { 'idempotency-status': 'bypassed', 'x-ratelimit-remaining': '4' },
    });
    expect(outcomes()).toEqual(['bypassed']);
    // The mark remains when a 429 of the provider removes the rate-limit headers (S16).
    const settled = entry.kind === 'proceed' ? entry.settle({ status: 429 }) : undefined;
    expect(settled).toEqual({ headers: { 'idempotency-status': 'bypassed' }, stripRateLimit: true });
  });

  it('unavailable only after the operation: reject sends its own response, reexecute sends 503 with retry-after', async () => {
    for (const [onOrphan, status, retryAfter] of [
      ['reject', undefined, undefined],
      ['reexecute', 503, '1'],
    ] as const) {
      const { gate, line, idempotency, world } = gateOf({ idempotency: { onOrphan } });
      line.next('complete', 'lost');
      const reply = await serve(gate);
      expect([reply?.status, reply?.headers['retry-after']]).toEqual([status, retryAfter]);
      await world.timers.advance(5_000);
      expect(idempotency.pending).toBe(0);
      expect(answer(await gate.enter(REQUEST)).text).toBe('sent');
    }
  });
});

describe('options', () => {
  it.each([
    [{ idempotency: undefined }, /idempotent: must be given if idempotency is/],
    [{ idempotent: undefined }, /idempotent: must be given if idempotency is/],
    [{ idempotency: {} }, /idempotency: must be what createIdempotency/],
    [{ isOutcome: true }, /isOutcome: must be a function/],
    [{ keepsField: ['x'] }, /keepsField: must be a function/],
  ])('%j is rejected with the name of the option', (gate, message) => {
    expect(() => gateOf({ gate: gate as never })).toThrow(message);
  });
});

it.each([
  ['a text', 'key'],
  ['a number', 5],
  ['an empty object', {}],
  ['null', null],
  ['no scope', { key: 'k', fingerprint: { value: 'f' } }],
  ['an empty scope, which all clients would share', { scope: '', key: 'k', fingerprint: { value: 'f' } }],
  ['no fingerprint', { scope: 'a', key: 'k' }],
])('an idempotent resolver that returns %s is a 500; nothing is charged or claimed', async (_name, returned) => {
  const { gate, events, left, outcomes } = gateOf({ gate: { idempotent: () => returned as never } });
  expect(problem(await gate.enter({}))).toMatchObject({ status: 500, type: 'errors/unexpected_error' });
  expect(events.at(-1)).toMatchObject({ type: 'failure', stage: 'idempotent', error: expect.any(TypeError) });
  expect([await left(), outcomes()]).toEqual([5, []]);
});

describe("dispatch: 'explicit'", () => {
  const explicit = { gate: { idempotent: (request: Request) => keyed(request, { dispatch: 'explicit' }) } };
  const INVALID: CapturedResponse = { status: 422, fields: [], body: Buffer.from('no subject') };

  it('the handler says when its effect begins, and its outcome is stored', async () => {
    const { gate, line } = gateOf(explicit);
    const entered = passage(await gate.enter(REQUEST));
    expect([line.sent, entered.recording.storeBeforeSending]).toEqual([['begin'], true]);
    await Promise.all([entered.dispatch(), entered.dispatch()]);
    expect(line.sent).toEqual(['begin', 'dispatch']);
    entered.settle({ status: 500 });
    expect(await entered.recording.store({ ...SENT, status: 500 })).toBeUndefined();
    expect(answer(await gate.enter(REQUEST))).toMatchObject({ status: 500, text: 'sent' });
  });

  it('I6: an error before that frees the key; a success before that is stored', async () => {
    const { gate, line, left } = gateOf(explicit);
    const invalid = passage(await gate.enter(REQUEST));
    invalid.settle({ status: 422 });
    expect(await invalid.recording.store(INVALID)).toBeUndefined();
    expect(line.sent).toEqual(['begin', 'abandon']);
    expect(await serve(gate)).toBeUndefined();
    expect(answer(await gate.enter(REQUEST))).toMatchObject({ status: 201, text: 'sent' });
    // The handler ran twice, so both are charged.
    expect(await left()).toBe(3);
  });

  it('I9: a handler that dies before that frees the key when its lease is over; one that dies later leaves an orphan', async () => {
    const world = createWorld();
    const settings = { maxRunMs: 1 };
    const dead = passage(await gateOf({ ...explicit, world, idempotency: settings }).gate.enter(REQUEST));
    await world.timers.advance(60_000);
    const { gate } = gateOf({ ...explicit, world, idempotency: settings });
    const second = passage(await gate.enter(REQUEST));
    await second.dispatch();
    await world.timers.advance(60_000);
    expect(problem(await gate.enter(REQUEST))).toMatchObject({ status: 409, type: 'errors/conflict' });
    // It must not begin any more, and its client gets the answer of the key.
    await expect(dead.dispatch()).rejects.toMatchObject({ code: 'not_dispatched' });
    const instead = await dead.recording.store({ ...SENT, status: 500 });
    expect(instead).toMatchObject({ status: 409, headers: { 'retry-after': '1' } });
    expect(await second.recording.store(SENT)).toBeUndefined();
    expect(answer(await gate.enter(REQUEST))).toMatchObject({ status: 201, text: 'sent' });
  });

  it('I12: without an answer of the store the effect must not happen, the client gets 503, and nothing is charged', async () => {
    const { gate, line, left, idempotency } = gateOf(explicit);
    const entered = passage(await gate.enter(REQUEST));
    line.always = 'lost';
    await expect(entered.dispatch()).rejects.toMatchObject({ code: 'not_dispatched' });
    line.always = 'ok';
    expect(await entered.recording.store({ ...SENT, status: 500 })).toMatchObject({ status: 503 });
    await settled();
    expect([await left(), idempotency.held]).toEqual([5, 0]);
  });

  it('I9: a handler that does not know its outcome leaves an orphan, without a wait for the lease', async () => {
    const { gate, line, left, world } = gateOf(explicit);
    const entered = passage(await gate.enter(REQUEST));
    await entered.dispatch();
    await entered.leave();
    // What the handler answers is sent, and neither stored nor taken for a release.
    expect(await entered.recording.store({ ...SENT, status: 504 })).toBeUndefined();
    expect(await entered.abandon()).toBeUndefined();
    expect(line.sent).toEqual(['begin', 'dispatch', 'extend']);
    await world.timers.advance(1);
    expect(problem(await gate.enter(REQUEST))).toMatchObject({ status: 409, type: 'errors/conflict' });
    expect(await left()).toBe(5);
  });

  it('resolves at once if there is nothing to record', async () => {
    const { gate, line } = gateOf(explicit);
    const unkeyed = await gate.enter({});
    if (unkeyed.kind === 'proceed') await unkeyed.dispatch();
    expect([unkeyed.kind, line.sent]).toEqual(['proceed', []]);
    const automatic = gateOf();
    const entered = passage(await automatic.gate.enter(REQUEST));
    await entered.dispatch();
    expect(automatic.line.sent).toEqual(['begin', 'dispatch']);
    await entered.recording.store(SENT);
  });

  it('dispatches the claim of a gate in front', async () => {
    const { gate, line } = gateOf(explicit);
    const outer = passage(await gate.enter(REQUEST));
    const inner = await gateOf().gate.enter(REQUEST, undefined, outer);
    if (inner.kind === 'proceed') await inner.dispatch();
    expect(line.sent).toEqual(['begin', 'dispatch']);
    await outer.recording.store(SENT);
  });

  it('any other value is a mistake of the program', async () => {
    const { gate } = gateOf({ gate: { idempotent: (request) => keyed(request, { dispatch: 'later' as never }) } });
    expect(problem(await gate.enter(REQUEST)).status).toBe(500);
  });
});
