import { expect, it } from 'vitest';
import { createLimiter } from '../../src/index.ts';
import { decorateLimiter } from '../../src/limits/decorate-limiter.ts';
import { partsOf } from '../../src/limits/limiter-parts.ts';
import { withShadow } from '../../src/shadow/shadow.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';

const SUBJECT = { account: 'acc', route: 'POST /emails' };
const limits = { allMethods: ['5/1m'] };

it('a decorated limiter has every method of the limiter, and its store', async () => {
  const store = createMemoryStore();
  const limiter = createLimiter({ store, limits });
  const routes: unknown[] = [];
  const decorated = decorateLimiter(limiter, {
    consume: (consume) => (request) => {
      routes.push(request.route);
      return consume(request);
    },
  });
  const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(limiter)).filter((name) => name !== 'constructor');
  expect(methods.filter((name) => !(name in decorated))).toEqual([]);
  expect([partsOf(decorated)?.store, decorated.synchronous]).toEqual([store, true]);
  expect((await decorated.consume(SUBJECT)).accepted).toBe(true);
  expect(routes).toEqual([SUBJECT.route]);
});

it('S21, S27: a limiter with a shadow blocks and unblocks', async () => {
  const limiter = withShadow(createLimiter({ store: createMemoryStore(), limits }), {
    limits: { allMethods: ['1/1m'] },
    store: createMemoryStore(),
  });
  await limiter.block({ account: 'acc' }, { forMs: 60_000, reason: 'Unpaid.' });
  expect(await limiter.consume(SUBJECT)).toMatchObject({ accepted: false, blocked: { reason: 'Unpaid.' } });
  expect(await limiter.blocked(SUBJECT)).toMatchObject({ reason: 'Unpaid.' });
  await limiter.unblock({ account: 'acc' });
  expect(limiter.consumeSync(SUBJECT).accepted).toBe(true);
});

it('a second shadow is refused if it would count in the store of the limiter', () => {
  const store = createMemoryStore();
  const limiter = withShadow(createLimiter({ store, limits }), { limits, store: createMemoryStore() });
  expect(() => withShadow(limiter, { limits, store })).toThrow(/store: must not be the store of the limiter/);
});
