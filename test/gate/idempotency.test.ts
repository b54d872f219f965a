import { afterEach, describe, expect, it } from 'vitest';
import type { Entry, Passage } from '../../src/gate/gate.ts';
import type { CapturedResponse, Recording } from '../../src/gate/recording.ts';
import { BodyError } from '../../src/http/body-error.ts';
import { fingerprint } from '../../src/http/fingerprint/fingerprint.ts';
import type { KeyFault } from '../../src/http/idempotency-key.ts';
import {
  createGate,
  createLimiter,
  type GateEvent,
  type GateOptions,
  type IdempotencyOptions,
  type IdempotentRequest,
  type LimitStore,
} from '../../src/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { settled } from '../support/fake-timers.ts';
import { createWorld, type Gateway, type World } from '../support/idempotency.ts';

interface Request {
  readonly key?: string;
  readonly scope?: string;
  readonly body?: string;
  readonly account?: string;
}

const printOf = ({ body = '{"a":1}', account = 'a' }: Request) =>
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
  return key === undefined ? undefined : { scope, key, fingerprint: await printOf(request), ...more };
}

const gateways: (Gateway & { readonly world: World })[] = [];
afterEach(async () => {
  for (const { idempotency, line, world } of gateways.splice(0)) {
    line.always = 'ok';
    line.deliver();
    // Whatever happened, no claim is held on to.
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
  const noting = <T>(stage: string, value: T): T => {
    order.push(stage);
    return value;
  };
  const limiter = createLimiter({ store: store ?? createMemoryStore({ clock: world.timers }), limits: { allMethods } });
  const gate = createGate<Request>({
    limiter,
    idempotency: gateway.idempotency,
    account: ({ account = 'a' }) => noting('account', account),
    route: () => 'r',
    cached: () => noting('cached', false),
    idempotent: (request) => noting('idempotent', keyed(request)),
    onEvent: (event) => events.push(event),
    ...options,
  });
  const left = async () => (await limiter.peek({ account: 'a', route: 'r' }))[0]?.remaining;
  const outcomes = () => events.flatMap((event) => (event.type === 'idempotency' ? [event.outcome] : []));
  const { idempotency: engine, line } = gateway;
  return { gate, limiter, events, order, left, outcomes, world, idempotency: engine, line };
}

function passage(entry: Entry): Passage & { recording: Recording } {
  if (entry.kind !== 'proceed') throw new Error(`answered ${entry.reply.status}: ${entry.reply.body}`);
  if (entry.recording === undefined) throw new Error('nothing is kept');
  return entry as Passage & { recording: Recording };
}

function answer(entry: Entry) {
  if (entry.kind !== 'answer') throw new Error('went on');
  const { status, headers, body } = entry.reply;
  return { status, headers, text: Buffer.from(body as Uint8Array).toString() };
}

function problem(entry: Entry) {
  const { status, headers, text } = answer(entry);
  return { headers, ...JSON.parse(text), status };
}

const REQUEST: Request = { key: 'k' };
const SENT: CapturedResponse = {
  status: 201,
  fields: ['content-type', 'text/plain', 'x-id', '7'],
  body: Buffer.from('sent'),
};

/** Enters, and answers as the handler would. */
async function serve(gate: ReturnType<typeof gateOf>['gate'], response = SENT, request = REQUEST) {
  const entered = passage(await gate.enter(request));
  entered.settle({ status: response.status });
  return entered.recording.store(response);
}

describe('the order of the stages', () => {
  it('idempotency comes before cache and limits; a request without a key simply goes on', async () => {
    const { gate, order, line } = gateOf();
    await serve(gate);
    expect(order).toEqual(['idempotent', 'account', 'cached']);
    expect(line.sent).toEqual(['begin', 'dispatch', 'complete']);
    const unkeyed = await gate.enter({});
    expect(unkeyed).toMatchObject({ kind: 'proceed', recording: undefined });
  });

  it('I6: the claim is dispatched only when every stage in front of the handler has said yes', async () => {
    const { gate, line } = gateOf({ allMethods: ['0/1m'] });
    expect(problem(await gate.enter(REQUEST)).status).toBe(429);
    expect(line.sent).toEqual(['begin', 'abandon']);
  });

  it('I1, I13: what cannot be taken is refused before anything is claimed or charged', async () => {
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

  it("a resolver that breaks is the program's fault: 500, never 503", async () => {
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

  it('a claim is given back where a later stage breaks', async () => {
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

  it('I2: the account is asked once, before the claim: one that cannot be taken claims nothing', async () => {
    const refusals: [() => unknown, number, string | undefined][] = [
      [() => Promise.reject(new BodyError(422, 'field_missing', 'no account_id')), 422, undefined],
      [() => Promise.reject(new Error('boom')), 500, 'account'],
      [() => 7, 500, 'account'],
      [() => null, 500, 'account'],
    ];
    for (const [account, status, stage] of refusals) {
      const idempotent = async (request: Request) => ({
        ...(await keyed(request)),
        scope: 's',
        key: 'k',
        fingerprint: () => print,
      });
      const print = await printOf({});
      const { gate, line, events } = gateOf({ gate: { account: account as () => string, idempotent } });
      expect(problem(await gate.enter(REQUEST)).status).toBe(status);
      expect([line.sent, events]).toMatchObject([[], stage === undefined ? [] : [{ type: 'failure', stage }]]);
    }
  });
});

describe('I2: the account is part of the same request', () => {
  const byAccount: GateOptions<Request>['idempotent'] = async ({ key = '' }) => {
    const prints = { a: await printOf({ account: 'a' }), b: await printOf({ account: 'b' }) };
    return { scope: 's', key, fingerprint: (account) => prints[account as 'a' | 'b'] };
  };

  it('a fingerprint that is made of what the gate says is the account: one may not have the answer of another', async () => {
    const { gate, order, left } = gateOf({ gate: { idempotent: byAccount } });
    await serve(gate);
    expect(order.filter((stage) => stage === 'account')).toHaveLength(1);
    const other = problem(await gate.enter({ key: 'k', account: 'b' }));
    expect([other.status, other.detail]).toEqual([409, expect.stringContaining('the account differs')]);
    expect(answer(await gate.enter(REQUEST)).text).toBe('sent');
    expect(await left()).toBe(4);
  });

  it('may be made later, as fingerprint() of headgate/http does', async () => {
    const idempotent = ({ key = '' }) => ({
      scope: 's',
      key,
      fingerprint: (account: string | undefined) => printOf({ account: String(account) }),
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
    ['gives nothing', () => undefined],
    ['gives nonsense', () => ({ value: 7 })],
  ])('a fingerprint that %s is a fault of the resolver that gave it: nothing is claimed', async (_how, fingerprint) => {
    const idempotent = async () => ({ scope: 's', key: 'k', fingerprint: fingerprint as never });
    const { gate, line, events } = gateOf({ gate: { idempotent } });
    expect(problem(await gate.enter(REQUEST)).status).toBe(500);
    expect([line.sent, events]).toMatchObject([[], [{ type: 'failure', stage: 'idempotent' }]]);
  });

  it('so is a setting that makes no sense', async () => {
    const idempotent = async (request: Request) => keyed(request, { waitMs: -1 });
    const { gate, events } = gateOf({ gate: { idempotent } });
    expect(problem(await gate.enter(REQUEST)).status).toBe(500);
    expect(events).toMatchObject([{ type: 'failure', stage: 'idempotent', error: { code: 'invalid_option' } }]);
  });
});

describe('I4: replays', () => {
  it('give status, fields and body, marked; are not charged, and carry no limit', async () => {
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

  it('hold for every status, 5xx too (I6), but the 429 of the provider', async () => {
    for (const status of [200, 302, 400, 404, 500, 503]) {
      const { gate } = gateOf();
      await serve(gate, { ...SENT, status });
      expect(answer(await gate.enter(REQUEST)).status).toBe(status);
    }
    const { gate, left } = gateOf();
    await serve(gate, { ...SENT, status: 429 });
    // S16: it was forwarded, so it stays charged.
    expect(await left()).toBe(4);
    passage(await gate.enter(REQUEST)).abandon();
    await settled();
  });

  it('I6: the classifier is an option', async () => {
    const { gate } = gateOf({ gate: { isOutcome: (status) => status < 500 } });
    await serve(gate, { ...SENT, status: 503 });
    await serve(gate, { ...SENT, status: 200 });
    expect(answer(await gate.enter(REQUEST)).status).toBe(200);
  });

  it('never store what is of the moment, the connection or the session; keepsField leaves out more, and never less', async () => {
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

  it('I7: a body over the bound is not kept, a body of the bound is', async () => {
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
      const refused = problem(await gate.enter({ key }));
      expect(refused).toMatchObject({ status: 409, type: 'errors/already_used' });
      expect(refused.detail).toMatch(/completed with status 201/);
      expect(refused.headers['retry-after']).toBeUndefined();
      expect(outcomes().at(-1)).toBe('not_kept');
    }
    await other.abandon();
  });
});

describe('I2: the key of another request', () => {
  it('is 409 at once, saying what differs in the words of whoever asks; nothing is charged', async () => {
    const { gate, left } = gateOf();
    const running = passage(await gate.enter(REQUEST));
    const refused = problem(await gate.enter({ ...REQUEST, body: '{"a":2}' }));
    expect(refused).toMatchObject({ status: 409, type: 'errors/already_used' });
    expect(refused.detail).toMatch(/another request: a differs/);
    expect(problem(await gate.enter({ ...REQUEST, account: 'b' })).detail).toMatch(/the account differs/);
    await running.recording.store(SENT);
    expect(problem(await gate.enter({ ...REQUEST, body: '{"a":2}' })).type).toBe('errors/already_used');
    expect(await left()).toBe(4);
  });

  it('of another application is another key', async () => {
    const { gate } = gateOf();
    await serve(gate);
    await serve(gate, SENT, { ...REQUEST, scope: 'app_2', body: '{"a":2}' });
  });
});

describe('I5: while the original runs', () => {
  it('a duplicate waits, and gets its answer', async () => {
    const { gate, left } = gateOf();
    const running = passage(await gate.enter(REQUEST));
    const duplicate = gate.enter(REQUEST);
    await settled();
    await running.recording.store(SENT);
    expect(answer(await duplicate).text).toBe('sent');
    expect(await left()).toBe(4);
  });

  it('past the bound it is 409 errors/conflict with retry-after', async () => {
    const { gate, world } = gateOf({ idempotency: { waitMs: 1_000 } });
    const running = passage(await gate.enter(REQUEST));
    const duplicate = gate.enter(REQUEST);
    await settled();
    await world.timers.advance(1_000);
    const refused = problem(await duplicate);
    expect(refused).toMatchObject({ status: 409, type: 'errors/conflict', req_id: expect.any(String) });
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    await running.abandon();
  });

  it('one whose client goes waits no longer', async () => {
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

describe('I6: what never began', () => {
  it('our own 429 gives the key back before it is answered, and the same key works later', async () => {
    const { gate, line, world } = gateOf({ allMethods: ['1/1m'] });
    await serve(gate, SENT, { key: 'first' });
    line.sent.length = 0;
    line.next('abandon', 'hung');
    let rejected: Entry | undefined;
    const entering = Promise.resolve(gate.enter(REQUEST)).then((entry) => {
      rejected = entry;
    });
    await settled();
    expect([line.sent, rejected]).toEqual([['begin', 'abandon'], undefined]);
    line.deliver();
    await entering;
    expect(problem(rejected as unknown as Entry)).toMatchObject({ status: 429, headers: { 'retry-after': '60' } });
    await world.timers.advance(60_000);
    await serve(gate);
  });

  it('an abandoned passage takes charge and claim back, once; its answer is not kept', async () => {
    const { gate, left, line } = gateOf();
    const entered = passage(await gate.enter(REQUEST));
    await entered.abandon();
    await entered.abandon();
    expect(await entered.recording.store(SENT)).toBeUndefined();
    expect([await left(), line.sent]).toEqual([5, ['begin', 'dispatch', 'abandon']]);
    await serve(gate);
  });
});

describe('I9, I10: owners that die, stall or lose', () => {
  /** Another process that claimed, dispatched and died. */
  async function orphaned(world: World) {
    const dead = world.gateway();
    const print = await printOf(REQUEST);
    const opened = await dead.idempotency.open({
      scope: 'app_1',
      key: 'k',
      fingerprint: print.value,
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
    const refused = problem(await gate.enter(REQUEST));
    expect(refused).toMatchObject({ status: 409, type: 'errors/conflict' });
    expect([refused.headers['retry-after'], await left(), outcomes()]).toEqual([undefined, 5, ['orphan']]);
  });

  it('reexecute: it goes on, and nothing may be seen before it is kept', async () => {
    const world = createWorld();
    await orphaned(world);
    const { gate } = gateOf({ world, idempotency: { onOrphan: 'reexecute' } });
    const entered = passage(await gate.enter(REQUEST));
    expect(entered.recording.storeBeforeSending).toBe(true);
    await entered.recording.store(SENT);
  });

  it('reconcile: what the provider knows is replayed', async () => {
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

  it('reject holds nothing back whole', async () => {
    const { gate } = gateOf();
    const entered = passage(await gate.enter(REQUEST));
    expect(entered.recording.storeBeforeSending).toBe(false);
    await entered.recording.store(SENT);
  });

  it('P2: the loser is told the winner’s answer, never its own', async () => {
    const { gate, idempotency } = gateOf({ idempotency: { onOrphan: 'reexecute' } });
    const entered = passage(await gate.enter(REQUEST));
    await idempotency.completeWith({ scope: 'app_1', key: 'k' }, { status: '200', value: '[1,200,[]]\ntwon' });
    const instead = await entered.recording.store(SENT);
    expect([instead?.status, Buffer.from(instead?.body as Uint8Array).toString()]).toEqual([200, 'won']);
  });

  it('a winner without a body is 409 errors/already_used', async () => {
    const { gate, idempotency } = gateOf();
    const entered = passage(await gate.enter(REQUEST));
    await idempotency.completeWith({ scope: 'app_1', key: 'k' }, { status: '200', value: undefined });
    expect((await entered.recording.store(SENT))?.status).toBe(409);
  });

  it('what stands in the store and is not ours is not replayed', async () => {
    const { gate, idempotency } = gateOf();
    const entered = passage(await gate.enter(REQUEST));
    await idempotency.completeWith({ scope: 'app_1', key: 'k' }, { status: '200', value: 'garbage' });
    expect((await entered.recording.store(SENT))?.status).toBe(409);
  });
});

describe('I12: the store is away', () => {
  it('refuse: 503 without any rate-limit field, nothing charged, told as a failure', async () => {
    const { gate, line, left, events } = gateOf();
    line.always = 'lost';
    const refused = problem(await gate.enter(REQUEST));
    expect(refused).toMatchObject({ status: 503, type: 'errors/service_unavailable' });
    expect(Object.keys(refused.headers)).toEqual(['content-type', 'content-length', 'cache-control']);
    expect(events).toMatchObject([{ type: 'failure', stage: 'idempotency' }]);
    expect(await left()).toBe(5);
  });

  it('lost at dispatch: 503, the charge is taken back, the claim later', async () => {
    const { gate, line, left, idempotency, world } = gateOf();
    line.next('dispatch', 'lost', 'lost');
    expect(problem(await gate.enter(REQUEST)).status).toBe(503);
    expect(await left()).toBe(5);
    await world.timers.advance(5_000);
    expect([line.sent.at(-1), idempotency.pending]).toEqual(['abandon', 0]);
    await serve(gate);
  });

  it('bypass: it goes on unprotected, marked beside its limits, and nothing is kept', async () => {
    const { gate, line, outcomes } = gateOf({ idempotency: { onStoreFailure: 'bypass' } });
    line.always = 'lost';
    const entry = await gate.enter(REQUEST);
    expect(entry).toMatchObject({
      kind: 'proceed',
      recording: undefined,
      headers: { 'idempotency-status': 'bypassed', 'x-ratelimit-remaining': '4' },
    });
    expect(outcomes()).toEqual(['bypassed']);
    // Also where the provider's own 429 takes the limits' fields away (S16).
    const settled = entry.kind === 'proceed' ? entry.settle({ status: 429 }) : undefined;
    expect(settled).toEqual({ headers: { 'idempotency-status': 'bypassed' }, stripRateLimit: true });
  });

  it('only after the operation: with reject the own answer stands, otherwise it is 503', async () => {
    for (const [onOrphan, status] of [
      ['reject', undefined],
      ['reexecute', 503],
    ] as const) {
      const { gate, line, idempotency, world } = gateOf({ idempotency: { onOrphan } });
      line.next('complete', 'lost');
      expect((await serve(gate))?.status).toBe(status);
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
  ])('%j is refused by name', (gate, message) => {
    expect(() => gateOf({ gate: gate as never })).toThrow(message);
  });
});

it.each([
  ['a text', 'key'],
  ['a number', 5],
  ['nothing of the kind', {}],
  ['null', null],
  ['no scope', { key: 'k', fingerprint: { value: 'f' } }],
  ['an empty scope, which would be everybody', { scope: '', key: 'k', fingerprint: { value: 'f' } }],
  ['no fingerprint', { scope: 'a', key: 'k' }],
])('an idempotent resolver that gives %s is answered 500; nothing is charged or claimed', async (_name, given) => {
  const { gate, events, left, outcomes } = gateOf({ gate: { idempotent: () => given as never } });
  expect(problem(await gate.enter({}))).toMatchObject({ status: 500, type: 'errors/unexpected_error' });
  expect(events.at(-1)).toMatchObject({ type: 'failure', stage: 'idempotent', error: expect.any(TypeError) });
  expect([await left(), outcomes()]).toEqual([5, []]);
});
