import { expect, it } from 'vitest';
import { createGate } from '../../src/gate/create-gate.ts';
import { rateLimitFields } from '../../src/http/index.ts';
import { rateLimitStyles } from '../../src/http/rate-limit-fields.ts';
import { createLimiter } from '../../src/limits/limiter.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';

function twoDecisions() {
  const clock = createFakeClock(0);
  const limiter = createLimiter({
    store: createMemoryStore({ clock }),
    limits: { allMethods: ['60/1m', '5000/1d'], routes: { r: ['1/1500ms'] } },
  });
  const accepted = limiter.consumeSync({ account: 'a', route: 'r' });
  clock.advance(499);
  return { accepted, rejected: limiter.consumeSync({ account: 'a', route: 'r' }) };
}

it('S6, S7: an accepted request shows the last window, in whole seconds', () => {
  expect(rateLimitFields(twoDecisions().accepted)).toEqual({
    'x-ratelimit-limit': '5000',
    'x-ratelimit-remaining': '4999',
    'x-ratelimit-reset': '86400',
  });
});

it('S7, S8: a rejection shows the window that rejected, rounded up, with the same retry-after', () => {
  expect(rateLimitFields(twoDecisions().rejected)).toEqual({
    'x-ratelimit-limit': '1',
    'x-ratelimit-remaining': '0',
    'x-ratelimit-reset': '2',
    'retry-after': '2',
  });
});

it('the IETF fields have every window of the trace, and durations are rounded up to whole seconds', () => {
  const { accepted, rejected } = twoDecisions();
  expect(rateLimitFields(accepted, 'ietf')).toEqual({
    'ratelimit-policy': '"route-1500ms";q=1;w=2, "all-methods-1m";q=60;w=60, "all-methods-1d";q=5000;w=86400',
    ratelimit: '"route-1500ms";r=0;t=2, "all-methods-1m";r=59;t=60, "all-methods-1d";r=4999;t=86400',
  });
  expect(rateLimitFields(rejected, 'ietf')).toEqual({
    'ratelimit-policy': '"route-1500ms";q=1;w=2',
    ratelimit: '"route-1500ms";r=0;t=2',
    'retry-after': '2',
  });
  expect(Object.keys(rateLimitFields(accepted, ['x-ratelimit', 'ietf']))).toHaveLength(5);
  expect(rateLimitFields(accepted, [])).toEqual({});
  expect(rateLimitFields(rejected, [])).toEqual({ 'retry-after': '2' });
});

it('S6: without a plan there are no fields', () => {
  const limiter = createLimiter({ store: createMemoryStore(), limits: { unlimited: true } });
  expect(rateLimitFields(limiter.consumeSync({ account: 'a', route: 'r' }), ['x-ratelimit', 'ietf'])).toEqual({});
});

it('S17: a degraded decision shows nothing, accepted or rejected', () => {
  const { accepted, rejected } = twoDecisions();
  for (const { shown, accepted: isAccepted } of [accepted, rejected]) {
    const degraded = { accepted: isAccepted, shown, trace: [], degraded: true } as unknown as typeof accepted;
    expect(rateLimitFields(degraded)).toEqual({});
    expect(rateLimitFields(degraded, ['x-ratelimit', 'ietf'])).toEqual({});
  }
});

it('a single style is a shorthand of its list, in any order', () => {
  const { accepted, rejected } = twoDecisions();
  for (const decision of [accepted, rejected]) {
    expect(rateLimitFields(decision, ['x-ratelimit'])).toEqual(rateLimitFields(decision, 'x-ratelimit'));
    expect(rateLimitFields(decision, ['ietf'])).toEqual(rateLimitFields(decision, 'ietf'));
    expect(rateLimitFields(decision, ['ietf', 'x-ratelimit'])).toEqual(
      rateLimitFields(decision, ['x-ratelimit', 'ietf']),
    );
  }
});

it.each([
  ['none', 'headers: must be a list of "x-ratelimit", "ietf", or one of them, got "none"'],
  [['ietf', 'none'], 'headers: must be a list of "x-ratelimit", "ietf", or one of them, got "none"'],
  ['x-rate-limit', 'headers: must be a list of "x-ratelimit", "ietf", or one of them, got "x-rate-limit"'],
  [['constructor'], 'headers: must be a list of "x-ratelimit", "ietf", or one of them, got "constructor"'],
  [null, 'headers: must be a list of "x-ratelimit", "ietf", or one of them, got null'],
])('an unknown style %j is an error that says what to write', (style, message) => {
  expect(() => rateLimitStyles(style)).toThrow(message);
  const limiter = createLimiter({ store: createMemoryStore(), limits: { unlimited: true } });
  const gate = { limiter, account: () => 'a', route: () => 'r', headers: style as never };
  expect(() => createGate(gate)).toThrow(message);
});
