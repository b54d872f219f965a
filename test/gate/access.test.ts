import { describe, expect, it } from 'vitest';
import { answerOf, openGate, type PlainRequest } from '../support/open-gate.ts';

const REQUEST = { account: 'a', route: 'r' };
const boom = () => {
  throw new Error('boom');
};
const later =
  <Value>(value: Value) =>
  async () =>
    value;

describe('deny', () => {
  it.each([
    ['true', () => true, 'This request is not allowed.'],
    ['a text', () => 'Your contract has ended.', 'Your contract has ended.'],
    ['a promise of a text', later('Your contract has ended.'), 'Your contract has ended.'],
  ])('%s: 403, before any other resolver, key or charge', async (_, deny, detail) => {
    const { gate, events, resolved, claims, left } = openGate({ deny, allow: () => true });
    for (const key of [{}, { key: 'k' }]) {
      expect(answerOf(await gate.enter({ ...REQUEST, ...key }, 'req-1'))).toMatchObject({
        status: 403,
        type: 'errors/resource_access_restricted',
        detail,
        req_id: 'req-1',
      });
    }
    const refused = { type: 'refused', requestId: 'req-1', reason: 'denied', status: 403 };
    expect(events).toEqual([refused, refused]);
    expect(resolved).toEqual([]);
    expect(claims.inspect({ scope: 'app_1', key: 'k' })).toBeUndefined();
    expect(await left()).toBe(2);
  });

  it.each([() => false, later(false)])('false: the request goes on', async (deny) => {
    const { gate } = openGate({ deny });
    expect(await gate.enter(REQUEST)).toMatchObject({ headers: { 'x-ratelimit-remaining': '1' } });
    expect(answerOf(await gate.enter({ route: 'r' }))).toMatchObject({ status: 401 });
  });

  it.each([undefined, null, 0, 1, '', {}, ['10.0.0.1']])('%j is a 500, never a pass', async (value) => {
    for (const deny of [() => value, later(value)]) {
      const { gate, events, resolved } = openGate({ deny: deny as never });
      expect(answerOf(await gate.enter(REQUEST))).toMatchObject({ status: 500 });
      const message = expect.stringMatching(/^deny: the resolver must return true, false or a text/);
      expect(events).toMatchObject([{ type: 'failure', stage: 'deny', error: { message } }]);
      expect(resolved).toEqual([]);
    }
  });

  it('is asked in front of the account, also behind another gate that stores the outcome', async () => {
    const outer = await openGate().gate.enter({ ...REQUEST, key: 'k' });
    if (outer.kind === 'answer') throw new Error('the request was answered');
    const { gate, resolved } = openGate({ deny: () => true });
    expect(answerOf(await gate.enter({ ...REQUEST, key: 'k' }, undefined, outer))).toMatchObject({ status: 403 });
    expect(resolved).toEqual([]);
    await outer.abandon();
  });
});

describe('allow', () => {
  it.each([() => true, later(true)])(
    'true: the request passes without a decision, an account or a limit',
    async (allow) => {
      const { gate, events, left } = openGate({ allow });
      for (const request of [REQUEST, REQUEST, REQUEST, { route: 'r' }, {}])
        expect(await gate.enter(request)).toMatchObject({ kind: 'proceed', decision: undefined, headers: {} });
      expect(events).toMatchObject(Array.from({ length: 5 }, () => ({ type: 'skipped', reason: 'allowed' })));
      expect(await left()).toBe(2);
    },
  );

  it('true: the idempotency key still works', async () => {
    const { gate, events } = openGate({ allow: () => true });
    for (const [key, request] of [
      ['k1', { ...REQUEST, key: 'k1' }],
      ['k2', { route: 'r', key: 'k2' }],
    ] as const) {
      const entry = await gate.enter(request);
      if (entry.kind === 'answer') throw new Error('the request was answered');
      expect(entry.decision).toBeUndefined();
      await entry.recording?.store({ status: 201, fields: [], body: new TextEncoder().encode(key) });
      expect(await gate.enter(request)).toMatchObject({ replayed: true, reply: { status: 201 } });
    }
    expect(events.filter(({ type }) => type === 'decision')).toEqual([]);
  });

  it('true: no account is needed, so its resolver may fail if there is no key', async () => {
    const account = (): never => {
      throw new TypeError("Cannot read properties of undefined (reading 'id')");
    };
    const { gate } = openGate({ allow: () => true, account });
    expect(answerOf(await gate.enter({ route: 'r' }))).toBe('proceed');
    // With a key the account is a part of the fingerprint (I2).
    expect(answerOf(await gate.enter({ route: 'r', key: 'k' }))).toMatchObject({ status: 500 });
  });

  it.each([false, undefined])('%s: the limits apply', async (value) => {
    const { gate } = openGate({ allow: (() => value) as () => boolean });
    expect(await gate.enter(REQUEST)).toMatchObject({ headers: { 'x-ratelimit-remaining': '1' } });
    expect(answerOf(await gate.enter({ route: 'r' }))).toMatchObject({ status: 401 });
  });

  it.each([1, 'yes', {}, []])('%j is a 500, never a pass', async (value) => {
    for (const allow of [() => value, later(value)]) {
      const { gate, events } = openGate({ allow: allow as never });
      expect(answerOf(await gate.enter({ ...REQUEST, key: 'k' }))).toMatchObject({ status: 500 });
      const message = expect.stringMatching(/^allow: the resolver must return true or false/);
      expect(events).toMatchObject([{ type: 'failure', stage: 'allow', error: { message } }]);
    }
  });
});

describe('both', () => {
  it.each(['deny', 'allow'] as const)('%s that throws or rejects is a 500, never a pass', async (name) => {
    for (const resolver of [boom, async () => boom()]) {
      const { gate, events, left } = openGate({ [name]: resolver });
      for (const key of [{}, { key: 'k' }])
        expect(answerOf(await gate.enter({ ...REQUEST, ...key }))).toMatchObject({ status: 500 });
      expect(events).toMatchObject([
        { type: 'failure', stage: name },
        { type: 'failure', stage: name },
      ]);
      expect(await left()).toBe(2);
    }
  });

  it('a route can replace them', async () => {
    const deny = ({ account }: PlainRequest) => account === 'a';
    const { gate } = openGate({ deny });
    expect(answerOf(await gate.with({ deny: () => false }).enter(REQUEST))).toBe('proceed');
    expect(answerOf(await gate.with({ route: 'r' }).enter(REQUEST))).toMatchObject({ status: 403 });
    const free = gate.with({ deny: () => false, allow: () => true });
    expect(await free.enter(REQUEST)).toMatchObject({ kind: 'proceed', decision: undefined });
  });

  it('without a promise, the gate answers without one', () => {
    const { gate } = openGate({ deny: () => false, allow: () => true });
    expect(gate.enter(REQUEST)).toMatchObject({ kind: 'proceed' });
  });
});
