/** S33 at a gate: costs per unit, and a stream whose tokens are known at its end. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterFile } from 'headgate-testbed/after-file';
import { describe, expect, it } from 'vitest';
import { passageOf, withHeadgate } from '../../src/adapters/node.ts';
import type { Cost } from '../../src/core/unit.ts';
import { createGate } from '../../src/gate/create-gate.ts';
import type { GateEvent } from '../../src/gate/events.ts';
import { createLimiter } from '../../src/limits/limiter.ts';

const LIMITS = ['3/1h', '1000 tokens/1h'];

function setUp(rest: object = {}) {
  const limiter = createLimiter({ limits: LIMITS, validate: false });
  const events: GateEvent[] = [];
  const gate = createGate<{ cost?: Cost }>({
    limiter,
    account: () => 'a',
    cost: ({ cost = 1 }) => cost,
    headers: ['x-ratelimit', 'ietf'],
    onEvent: (event) => events.push(event),
    logger: false,
    validate: false,
    ...rest,
  });
  const left = async () => (await limiter.peek({ account: 'a' })).map(({ remaining }) => remaining);
  return { limiter, gate, events, left };
}

describe('a gate', () => {
  it('S33: shows every window with its unit, and names the unit in a rejection', async () => {
    const { gate, left } = setUp();
    const passage = await gate.enter({ cost: { requests: 1, tokens: 900 } });
    expect(passage).toMatchObject({
      kind: 'proceed',
      headers: {
        'x-ratelimit-remaining': '2',
        'ratelimit-policy': '"all-methods-1h";q=3;w=3600, "all-methods-tokens-1h";q=1000;qu="tokens";w=3600',
        ratelimit: '"all-methods-1h";r=2;t=3600, "all-methods-tokens-1h";r=100;t=3600',
      },
    });
    const rejected = await gate.enter({ cost: { requests: 1, tokens: 200 } });
    expect(rejected).toMatchObject({ kind: 'answer', reply: { status: 429 } });
    const body = (entry: unknown) => JSON.parse((entry as { reply: { body: string } }).reply.body).detail;
    expect(body(rejected)).toMatch(/^The rate limit of tokens has not enough left for this request; retry in \d+ s\.$/);
    const never = await gate.enter({ cost: { requests: 1, tokens: 1_001 } });
    expect(never).toMatchObject({ reply: { status: 422 } });
    expect(body(never)).toBe('The request costs more than this limit of tokens ever allows; waiting does not help.');
    expect(await left()).toEqual([2, 100]);
  });

  it('S13: finalCost corrects one unit; anything else is a failure, and the charge stays', async () => {
    let final: unknown;
    const { gate, left, events } = setUp({ finalCost: () => final });
    const run = async (value: unknown) => {
      final = value;
      const passage = await gate.enter({ cost: { requests: 1, tokens: 100 } });
      if (passage.kind === 'proceed') passage.settle({ status: 200 });
      await Promise.resolve();
    };
    await run({ tokens: 40 });
    expect(await left()).toEqual([2, 960]);
    expect(events.at(-1)).toMatchObject({ type: 'settled', cost: { tokens: 40 }, changed: true });
    await run(0);
    expect(await left()).toEqual([2, 960]);
    // A decision that costs no request has the cost 0 in requests.
    const { gate: ofTokens, left: whole } = setUp({ finalCost: () => 0 });
    const only = await ofTokens.enter({ cost: { tokens: 100 } });
    if (only.kind === 'proceed') only.settle({ status: 200 });
    expect(await whole()).toEqual([3, 1_000]);
    for (const wrong of [{ tokens: -1 }, {}, { tokns: 1 }]) {
      const { gate: other, left: rest, events: seen } = setUp({ finalCost: () => wrong });
      const passage = await other.enter({ cost: { requests: 1, tokens: 100 } });
      if (passage.kind === 'proceed') passage.settle({ status: 200 });
      await Promise.resolve();
      expect(seen.at(-1)).toMatchObject({ type: 'failure', error: { code: 'invalid_cost' } });
      expect(await rest()).toEqual([2, 900]);
    }
  });

  it('a route can have a cost per unit; a wrong one is an error at the start', async () => {
    const { gate, left } = setUp();
    await gate.with({ cost: { tokens: 5 } }).enter({});
    expect(await left()).toEqual([3, 995]);
    for (const cost of [{ tokens: 0 }, {}, 1.5]) expect(() => gate.with({ cost })).toThrow(/^cost/);
    expect(await gate.enter({ cost: { tokns: 1 } })).toMatchObject({ reply: { status: 500 } });
  });
});

it('S33: a stream settles its tokens at its end, also if the client breaks it off', async () => {
  const { gate, limiter, left } = setUp({ cost: () => ({ requests: 1, tokens: 500 }) });
  const handler = withHeadgate(gate as never, (request, response) => {
    const decision = passageOf(response)?.decision;
    let tokens = 0;
    const timer = setInterval(() => {
      tokens += 10;
      response.write('token ');
      if (request.url === '/whole' && tokens === 30) response.end();
    }, 2);
    response.once('close', () => {
      clearInterval(timer);
      if (decision !== undefined) void limiter.settle(decision, { tokens: request.url === '/whole' ? tokens : 20 });
    });
  });
  const server = createServer(handler).listen(0, '127.0.0.1');
  afterFile(() => server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  const whole = await fetch(`http://127.0.0.1:${port}/whole`);
  expect(whole.headers.get('ratelimit')).toContain('"all-methods-tokens-1h";r=500');
  await whole.text();
  await expect.poll(left).toEqual([2, 970]);
  const abort = new AbortController();
  const cut = await fetch(`http://127.0.0.1:${port}/cut`, { signal: abort.signal });
  await cut.body?.getReader().read();
  expect(await left()).toEqual([1, 470]);
  abort.abort();
  await expect.poll(left).toEqual([1, 950]);
});
