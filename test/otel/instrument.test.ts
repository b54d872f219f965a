import { channel } from 'node:diagnostics_channel';
import { DiagLogLevel, diag } from '@opentelemetry/api';
import { recordTelemetry } from 'headgate-testbed/telemetry';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { IN_FLIGHT_CHANNEL } from '../../src/core/in-flight-channel.ts';
import { createGate, createLimiter } from '../../src/index.ts';
import { createLeases } from '../../src/limits/index.ts';
import { type InstrumentOptions, instrument, isInstrumented } from '../../src/otel/instrument.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { openGate } from '../support/open-gate.ts';

const telemetry = recordTelemetry();
const { tracerProvider, meterProvider, measured, inSpan } = telemetry;
const start = (options: InstrumentOptions = {}) => {
  running = instrument({ tracerProvider, meterProvider, ...options });
  return running;
};
let running = { disable() {} };

afterEach(() => {
  running.disable();
  measured.length = 0;
  telemetry.spans.length = 0;
});

const of = (name: string) => measured.filter((one) => one.name === name).map(({ attributes }) => attributes);

describe('requests in flight', () => {
  it('S29: slots that ended before their requests are counted by what came of it', () => {
    start();
    channel(IN_FLIGHT_CHANNEL).publish({ type: 'over', account: 'a', route: 'r' });
    expect(of('headgate.in_flight.lost')).toEqual([{ 'headgate.in_flight.event': 'over', 'headgate.route': 'r' }]);
  });
});

describe('the events of leases', () => {
  it('S32: units are counted by what became of them, and no account is named', async () => {
    start();
    const limiter = createLimiter({ limits: ['1000/1m'], leases: createLeases() });
    for (let i = 0; i < 40; i++) await limiter.consume({ account: 'acc_secret' });
    await limiter.close();
    const events = of('headgate.lease.units').map((attributes) => attributes['headgate.lease.event']);
    expect(new Set(events)).toEqual(new Set(['leased', 'used', 'given_back']));
    expect(JSON.stringify(measured)).not.toContain('acc_secret');
  });
});

describe('the events of gates', () => {
  it('S28: the lane of a request is on its span and in the counter; a request without a lane has no such attribute', async () => {
    start();
    const limiter = createLimiter({ limits: { allMethods: ['10/1m'], lanes: { bulk: 0.5 } } });
    const gate = createGate<{ lane?: string }>({
      limiter,
      account: () => 'a',
      route: () => 'POST /x',
      lane: ({ lane }) => lane,
    });
    const span = await inSpan('bulk', () => gate.enter({ lane: 'bulk' }));
    expect(span).toMatchObject({ 'headgate.lane': 'bulk', 'headgate.window.max': 5 });
    expect(await inSpan('none', () => gate.enter({}))).not.toHaveProperty('headgate.lane');
    expect(of('headgate.decisions').map((attributes) => attributes['headgate.lane'])).toEqual(['bulk', undefined]);
  });

  it('S31: the group that rejected is on the span and in the counter, and its id is not', async () => {
    start();
    const limiter = createLimiter({ limits: { default: ['10/1m'], groups: { customer: ['1/1m'] } } });
    const gate = createGate({ limiter, account: () => 'a', groups: () => ({ customer: 'cus_7' }) });
    expect(await inSpan('accepted', () => gate.enter({}))).not.toHaveProperty('headgate.group');
    const span = await inSpan('rejected', () => gate.enter({}));
    expect(span).toMatchObject({ 'headgate.group': 'customer', 'headgate.window.max': 1 });
    expect(of('headgate.decisions').map((attributes) => attributes['headgate.group'])).toEqual([undefined, 'customer']);
    expect(JSON.stringify(measured)).not.toContain('cus_7');
  });

  it('a decision is on the span of its request, and is counted; no account is named', async () => {
    start();
    const { gate } = openGate();
    const request = { account: 'acc_secret', route: 'POST /x' };
    const first = await inSpan('first', () => gate.enter(request));
    await inSpan('second', () => gate.enter(request));
    const third = await inSpan('third', () => gate.enter(request));
    expect(first).toEqual({
      'headgate.outcome': 'accepted',
      'headgate.limit': 'all-methods',
      'headgate.window.duration_ms': 60_000,
      'headgate.window.max': 2,
      'headgate.window.remaining': 1,
    });
    expect(third).toMatchObject({ 'headgate.outcome': 'rejected', 'headgate.window.remaining': 0 });
    expect(of('headgate.decisions')).toEqual(
      ['accepted', 'accepted', 'rejected'].map((outcome) => ({
        'headgate.route': 'POST /x',
        'headgate.limit': 'all-methods',
        'headgate.outcome': outcome,
      })),
    );
    expect(JSON.stringify([telemetry.spans, measured])).not.toContain('acc_secret');
  });

  it('S21: a block is named as the limit that rejected', async () => {
    start();
    const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['2/1m'] } });
    const { gate } = openGate({ limiter });
    await limiter.block({ account: 'acc' }, { forMs: 60_000 });
    const attributes = await inSpan('a', () => gate.enter({ account: 'acc', route: 'POST /x' }));
    expect(attributes).toEqual({ 'headgate.outcome': 'rejected', 'headgate.limit': 'block' });
    expect(of('headgate.decisions')).toMatchObject([{ 'headgate.limit': 'block', 'headgate.outcome': 'rejected' }]);
  });

  it.each([
    ['plain', 'acc_1'],
    // The first digits that sha256sum gives.
    ['hash', 'd20de1051f11687f'],
  ] as const)('names the account %s, on spans only', async (account, shown) => {
    start({ account });
    const attributes = await inSpan('a', () => openGate().gate.enter({ account: 'acc_1', route: 'GET /' }));
    expect(attributes['headgate.account']).toBe(shown);
    expect(JSON.stringify(measured)).not.toContain(shown);
  });

  it('a request that is not limited, refused, or failed says so', async () => {
    start();
    const boom = () => {
      throw new Error('x');
    };
    const outcome = async (attributes: Promise<object>) =>
      ((await attributes) as Record<string, unknown>)['headgate.outcome'];
    expect(await outcome(inSpan('a', () => openGate().gate.enter({ account: 'a' })))).toBe('unlimited');
    expect(
      await outcome(inSpan('b', () => openGate({ deny: () => 'no' }).gate.enter({ account: 'a', route: 'r' }))),
    ).toBe('refused');
    expect(await outcome(inSpan('c', () => openGate({ account: boom }).gate.enter({ route: 'r' })))).toBe('refused');
  });

  it('a second gate without a limit does not take away the decision of the first', async () => {
    start();
    const attributes = await inSpan('a', async () => {
      const { gate } = openGate();
      await gate.enter({ account: 'a', route: 'r' });
      await gate.enter({ account: 'a' });
    });
    expect(attributes['headgate.outcome']).toBe('accepted');
  });

  it('a failure after the decision leaves the outcome, and a refund and a 429 of the provider are counted', async () => {
    start();
    const { gate } = openGate({ cooldown: true, finalCost: () => Promise.resolve(1) as never });
    const enter = async () => {
      const entry = await gate.enter({ account: 'a', route: 'r' });
      if (entry.kind !== 'proceed') throw new Error('rejected');
      return entry;
    };
    const abandoned = await enter();
    const attributes = await inSpan('a', async () => (await enter()).settle({ status: 429 }));
    expect(attributes['headgate.outcome']).toBe('accepted');
    await abandoned.abandon();
    expect(of('headgate.provider.rejections')).toEqual([{ 'headgate.route': 'r' }]);
    expect(of('headgate.refunds')).toEqual([{ 'headgate.route': 'r' }]);
    expect(of('headgate.cooldowns')).toEqual([{ 'headgate.route': 'r', 'headgate.cooldown.state': 'started' }]);
  });

  it('an idempotency key has its outcome: claimed, then replayed', async () => {
    start();
    const { gate } = openGate();
    const request = { account: 'a', route: 'r', key: 'k' };
    let store: (() => Promise<unknown>) | undefined;
    const first = await inSpan('first', async () => {
      const entry = await gate.enter(request);
      if (entry.kind !== 'proceed') throw new Error('not claimed');
      store = () => entry.recording?.store({ status: 200, fields: [], body: Buffer.from('x') }) as Promise<unknown>;
    });
    expect(first).toMatchObject({ 'headgate.idempotency.outcome': 'claimed', 'headgate.outcome': 'accepted' });
    await store?.();
    const again = await inSpan('again', () => gate.enter(request));
    expect(again).toMatchObject({ 'headgate.idempotency.outcome': 'replayed', 'headgate.outcome': 'replayed' });
    expect(of('headgate.claims').map((one) => one['headgate.idempotency.outcome'])).toEqual(['claimed', 'replayed']);
  });
});

describe('instrument', () => {
  it('a store in memory makes no span', async () => {
    start();
    const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['2/1m'] } });
    await limiter.consume({ account: 'a', route: 'r' });
    expect(telemetry.spans).toEqual([]);
  });

  it('after disable nothing listens any more, and a second disable does nothing', async () => {
    const { disable } = start();
    expect([isInstrumented(), channel('headgate:gate').hasSubscribers]).toEqual([true, true]);
    disable();
    disable();
    expect([isInstrumented(), channel('headgate:gate').hasSubscribers]).toEqual([false, false]);
    await openGate().gate.enter({ account: 'a', route: 'r' });
    expect(measured).toEqual([]);
  });

  it('works without any SDK, with the global providers', () => {
    const { disable } = instrument();
    expect(() => openGate().gate.enter({ account: 'a', route: 'r' })).not.toThrow();
    disable();
  });

  it('reports a provider that throws to diag, and the request goes on', async () => {
    const error = vi.fn();
    diag.setLogger({ error, warn() {}, info() {}, debug() {}, verbose() {} }, DiagLogLevel.ERROR);
    const add = () => {
      throw new Error('broken');
    };
    const meter = { ...meterProvider.getMeter(), createCounter: () => ({ add }) };
    start({ meterProvider: { getMeter: () => meter as never } });
    expect(await openGate().gate.enter({ account: 'a', route: 'r' })).toMatchObject({ kind: 'proceed' });
    expect(error).toHaveBeenCalledWith('headgate/otel failed', expect.objectContaining({ message: 'broken' }));
    diag.disable();
  });

  it.each([
    [{ account: 'md5' }, /options\.account: must be 'none', 'hash', 'plain'/],
    [{ tracerProvider: {} }, /options\.tracerProvider: must have the method getTracer/],
    [{ meterProvider: null }, /options\.meterProvider: must have the method getMeter/],
    [{ acount: 'none' }, /options\.acount: unknown option/],
  ])('refuses %o', (options, message) => {
    expect(() => instrument(options as never)).toThrow(message);
    expect(isInstrumented()).toBe(false);
  });

  it('says so if the runtime has no diagnostics channel', () => {
    vi.spyOn(process, 'getBuiltinModule').mockReturnValue(undefined as never);
    expect(() => instrument()).toThrow(/node:diagnostics_channel, which this runtime does not have/);
    vi.restoreAllMocks();
  });
});
