/** The descriptors of one call of Envoy are decided at the same time, and all of them count or none (S31). */
import { createGate, createLimiter } from 'headgate';
import { createMemoryStore } from 'headgate/memory';
import type { LimitStore } from 'headgate/stores';
import { describe, expect, it } from 'vitest';
import type { DescriptorSubject } from '../../src/decisions/descriptors.ts';
import { createRateLimitService } from '../../src/decisions/rate-limit-service.ts';
import type { Subject } from '../../src/exchange/exchange.ts';

/** A service over a store on a server, whose answers wait until `answer` is called. */
function start(maxes: Record<string, number>) {
  const memory = createMemoryStore();
  const waiting: (() => void)[] = [];
  const store: LimitStore = {
    synchronous: false,
    consume: async (...call) => {
      const decision = memory.consume(...call);
      await new Promise<void>((resolve) => waiting.push(resolve));
      return decision;
    },
    peek: async (...call) => memory.peek(...call),
    settle: async (...call) => memory.settle(...call),
    reset: async (target) => memory.reset(target),
  };
  const limits = Object.fromEntries(Object.entries(maxes).map(([id, max]) => [id, { allMethods: [`${max}/1m`] }]));
  const limiter = createLimiter({ store, limits: { default: { allMethods: ['9/1m'] }, accounts: limits } });
  const gate = createGate<Subject>({
    limiter,
    account: ({ account }) => account?.id,
    route: ({ route }) => route?.name,
    cost: ({ cost }) => cost ?? 1,
  });
  const route = { name: 'GET /a', source: undefined, isPublic: false, idempotent: undefined };
  const decide = createRateLimitService({
    limiter,
    gate,
    findDescriptor: (_domain, [entry]) =>
      ({ route, account: { id: entry?.value, application: 'app', scope: null }, isShadow: false }) as DescriptorSubject,
    onDecided: () => {},
  });
  const call = (...accounts: string[]) =>
    decide({
      domain: 'api',
      hitsAddend: 1,
      descriptors: accounts.map((value) => ({ entries: [{ key: 'account', value }], hitsAddend: undefined })),
    });
  const answer = (): number => waiting.splice(0).map((resolve) => resolve()).length;
  return { call, answer };
}

describe('a call with several descriptors', () => {
  it('asks the store about all of them at once', async () => {
    const { call, answer } = start({});
    const decided = call('a', 'b', 'c');
    expect(answer()).toBe(3);
    expect((await decided).descriptors.map(({ shown }) => shown?.remaining)).toEqual([8, 8, 8]);
  });

  it.each([
    ['first', ['full', 'b', 'c'], [0, 9, 9]],
    ['last', ['b', 'c', 'full'], [9, 9, 0]],
  ])('charges nothing if the %s one is over its limit', async (_which, accounts, remaining) => {
    const { call, answer } = start({ full: 1 });
    const used = call('full');
    answer();
    await used;
    const decided = call(...accounts);
    expect(answer()).toBe(3);
    const { isOverLimit, descriptors } = await decided;
    expect([isOverLimit, descriptors.map(({ shown }) => shown?.remaining)]).toEqual([true, remaining]);
  });
});
