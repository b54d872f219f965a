import { expect, it } from 'vitest';
import { withHeadgate } from '../../../src/adapters/fetch.ts';
import { createGate, createLimiter } from '../../../src/index.ts';

it('S29: a handler that returns a response that cannot be sent gives the slot back', async () => {
  const limiter = createLimiter({ limits: { allMethods: { windows: ['9/1m'], inFlight: 1 } }, validate: false });
  const gate = createGate<Request>({ limiter, account: () => 'a', route: () => 'r', validate: false });
  const handle = withHeadgate(gate, async () => {
    const response = await fetch('data:text/plain,hello');
    await response.text();
    return response;
  });
  await expect(handle(new Request('http://localhost/'))).rejects.toThrow(TypeError);
  expect(await limiter.inFlight({ account: 'a', route: 'r' })).toEqual({ running: 0, max: 1 });
});
