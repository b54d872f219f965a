/** The layers of the config keys `idempotent` and `idempotency`. */

import { answer, startUpstream } from 'headgate-testbed/upstream';
import { describe, expect, it } from 'vitest';
import { expectProblem, startGateway } from '../support/gateway.ts';
import { callsOf, expectOriginal, expectReplay, freshKey, keyedConfig, OPEN, post } from '../support/keyed.ts';

describe('layers', () => {
  it("a route's own settings override the block's, and those override the defaults", async () => {
    const upstream = await startUpstream(answer({ body: 'x'.repeat(50) }));
    const gateway = await startGateway(
      keyedConfig(upstream.url, {
        idempotency: { maxKeptBytes: 10 },
        routes: [
          { route: 'POST /api/v1/open', idempotent: true },
          { route: 'POST /api/v1/own', idempotent: { maxKeptBytes: 100 } },
          { route: 'POST /api/v1/off', idempotent: false },
        ],
      }),
    );
    const key = freshKey();
    expectOriginal(await post(gateway, key, { path: OPEN }));
    expectProblem(await post(gateway, key, { path: OPEN }), 409, 'errors/already_used');
    const own = freshKey();
    const original = await post(gateway, own, { path: '/api/v1/own' });
    expectReplay(await post(gateway, own, { path: '/api/v1/own' }), original);
    const off = freshKey();
    for (let i = 0; i < 2; i += 1) expectOriginal(await post(gateway, off, { path: '/api/v1/off' }));
    expect(callsOf(upstream, off)).toHaveLength(2);
    await gateway.stop();
  });
});
