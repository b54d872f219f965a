import { describe, expect, it } from 'vitest';
import { answerOf, openGate } from '../support/open-gate.ts';

const KEYS = [undefined, 'k'] as const;

describe('a request whose account is undefined', () => {
  it.each(KEYS)('with the key %s gets 401 by default; nothing is claimed, charged or read', async (key) => {
    const { gate, events, resolved, claims, left } = openGate();
    expect(answerOf(await gate.enter({ route: 'r', ...(key && { key }) }, 'req-1'))).toMatchObject({
      status: 401,
      type: 'errors/missing_credentials',
      detail: expect.stringContaining('send the credentials'),
      req_id: 'req-1',
    });
    expect(events).toEqual([{ type: 'refused', requestId: 'req-1', reason: 'no_account', status: 401 }]);
    expect(resolved).not.toContain('idempotent');
    expect(claims.inspect({ scope: 'app_1', key: 'k' })).toBeUndefined();
    expect(await left()).toBe(2);
  });

  it.each(KEYS)('with the key %s and asynchronous resolvers gets 401 too', async (key) => {
    const { gate } = openGate({ account: async () => undefined, route: async () => 'r' });
    expect(answerOf(await gate.enter(key === undefined ? {} : { key }))).toMatchObject({ status: 401 });
  });

  it.each([
    ['synchronous', () => undefined],
    ['asynchronous', async () => undefined],
  ])('gets 401 although other resolvers need its account, with an %s account', async (_, account) => {
    const fail = (): never => {
      throw new TypeError("Cannot read properties of undefined (reading 'plan')");
    };
    const { gate } = openGate({
      account,
      provider: fail,
      plan: fail,
      cost: fail,
      cached: fail,
      idempotency: undefined,
      idempotent: undefined,
    });
    expect(answerOf(await gate.enter({ route: 'r' }))).toMatchObject({ status: 401 });
  });

  it('is refused although a cache would answer it', async () => {
    const { gate } = openGate({ cached: () => true });
    expect(answerOf(await gate.enter({ route: 'r' }))).toMatchObject({ status: 401 });
  });

  it('has a req_id, also without a listener', async () => {
    const answer = answerOf(await openGate({ onEvent: undefined }).gate.enter({ route: 'r' }));
    expect((answer as { req_id: string }).req_id).toMatch(/^[0-9a-f-]{36}$/);
  });

  it.each([
    [{ status: 401 }, 401, 'errors/missing_credentials', 'send the credentials'],
    [{ status: 401, detail: 'Log in at /login.' }, 401, 'errors/missing_credentials', 'Log in at /login.'],
    [{ status: 403 }, 403, 'errors/resource_access_restricted', 'belong to no account'],
    [{ status: 403, detail: 'Connect it first.' }, 403, 'errors/resource_access_restricted', 'Connect it first.'],
  ] as const)('with onNoAccount: %j gets %i %s', async (onNoAccount, status, type, detail) => {
    const { gate, events } = openGate({ onNoAccount });
    const answer = answerOf(await gate.enter({ route: 'r', key: 'k' }));
    expect(answer).toMatchObject({ status, type, detail: expect.stringContaining(detail) });
    expect(events).toMatchObject([{ type: 'refused', status }]);
  });

  it('with onNoAccount: pass is not limited, and its key works', async () => {
    const { gate, events, claims } = openGate({ onNoAccount: 'pass' });
    const unkeyed = await gate.enter({ route: 'r' });
    expect(unkeyed).toMatchObject({ kind: 'proceed', decision: undefined, headers: {} });
    expect(events).toMatchObject([{ type: 'skipped', reason: 'not_limited' }]);
    const entry = await gate.enter({ route: 'r', key: 'k' });
    if (entry.kind === 'answer') throw new Error('the request was answered');
    await entry.recording?.store({ status: 201, fields: [], body: new TextEncoder().encode('sent') });
    expect(claims.inspect({ scope: 'app_1', key: 'k' })).toMatchObject({ state: 'completed' });
    expect(await gate.enter({ route: 'r', key: 'k' })).toMatchObject({ replayed: true, reply: { status: 201 } });
  });

  it.each(KEYS)('with the key %s passes if its route is undefined too, because that exempts it', async (key) => {
    for (const route of [() => undefined, async () => undefined]) {
      const { gate, events } = openGate({ route });
      expect(await gate.enter(key === undefined ? {} : { key })).toMatchObject({ kind: 'proceed', headers: {} });
      expect(events.at(-1)).toMatchObject({ type: 'skipped', reason: 'not_limited' });
    }
  });

  it('a route can choose for itself, in both directions', async () => {
    const { gate } = openGate();
    expect(answerOf(await gate.with({ onNoAccount: 'pass' }).enter({ route: 'r' }))).toBe('proceed');
    expect(answerOf(await gate.with({ onNoAccount: { status: 403 } }).enter({ route: 'r' }))).toMatchObject({
      status: 403,
    });
    const open = openGate({ onNoAccount: 'pass' }).gate;
    expect(answerOf(await open.with({ onNoAccount: 'reject' }).enter({ route: 'r' }))).toMatchObject({ status: 401 });
    expect(() => gate.with({ onNoAccount: 'maybe' as never })).toThrow(/^onNoAccount: must be/);
  });

  it.each(KEYS)('a resolver that fails is a 500 with the key %s, never a 401 or a pass', async (key) => {
    const boom = () => {
      throw new Error('boom');
    };
    const reject = async () => boom();
    for (const options of [{ account: boom }, { account: reject }, { route: boom }, { route: reject }]) {
      const { gate, events } = openGate(options);
      const [stage] = Object.keys(options);
      expect(answerOf(await gate.enter(key === undefined ? {} : { key }))).toMatchObject({ status: 500 });
      expect(events).toMatchObject([{ type: 'failure', stage }]);
    }
  });

  it('behind a gate that stores the outcome, is refused too, and the key of the outer gate is released', async () => {
    const outer = openGate();
    const passed = await outer.gate.enter({ account: 'a', route: 'r', key: 'k' });
    if (passed.kind === 'answer') throw new Error('the request was answered');
    const inner = await openGate().gate.enter({ route: 'r', key: 'k' }, undefined, passed);
    expect(answerOf(inner)).toMatchObject({ status: 401 });
    passed.settle({ status: 401, fromGate: true });
    await passed.recording?.store({ status: 401, fields: [], body: undefined });
    expect(outer.claims.inspect({ scope: 'app_1', key: 'k' })?.state).toBe('free');
  });
});

it('a request whose route is undefined needs no account, so the resolver is not called and cannot fail', async () => {
  const account = (): never => {
    throw new TypeError("Cannot read properties of undefined (reading 'id')");
  };
  const { gate } = openGate({ account, idempotency: undefined, idempotent: undefined });
  expect(answerOf(await gate.enter({}))).toBe('proceed');
  expect(answerOf(await gate.enter({ route: 'r' }))).toMatchObject({ status: 500 });
});

it('the empty string is an account like any other', async () => {
  const { gate } = openGate();
  expect(await gate.enter({ account: '', route: 'r' })).toMatchObject({ headers: { 'x-ratelimit-remaining': '1' } });
});
