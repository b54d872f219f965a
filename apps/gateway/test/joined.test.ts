/** S28 to S31 and S33: an AI gateway from one config: units, groups, requests in flight, cooldown and lanes. */
import { eventually } from 'headgate-testbed/raw-http';
import { answer, held, startUpstream } from 'headgate-testbed/upstream';
import { expect, it } from 'vitest';
import { expectProblem } from './support/gateway.ts';
import { startInProcess } from './support/in-process.ts';

const KEYS = [
  { name: 'ann', token: 'token-of-ann', application: 'acme', groups: { organisation: 'acme' } },
  { name: 'bob', token: 'token-of-bob', application: 'acme', groups: { organisation: 'acme' } },
  { name: 'night', token: 'token-of-night', application: 'acme', groups: { organisation: 'acme' }, lane: 'batch' },
];
const LIMITS = {
  default: { allMethods: { windows: ['100/1h', '1000 tokens/1h'], scope: 'account', inFlight: 2 } },
  groups: { organisation: { allMethods: { windows: ['100/1h', '1500 tokens/1h'], scope: 'account' } } },
  lanes: { batch: 0.4 },
};

it('decides by all of them together, and settles what the upstream says', async () => {
  const upstream = await startUpstream();
  const gateway = await startInProcess({
    upstream: { url: upstream.url, cooldown: true },
    keys: KEYS,
    routes: [
      {
        route: 'POST /v1/chat',
        account: 'key',
        cost: { requests: 1, tokens: 400 },
        finalCost: { tokens: 'x-tokens-used' },
      },
    ],
    limits: LIMITS,
    headers: 'ietf',
  });
  const ask = (name: string) => gateway.ask('POST', '/v1/chat', { 'x-api-key': `token-of-${name}` });
  const used = (tokens: number) => answer({ headers: { 'x-tokens-used': String(tokens) } });

  // Each waiting request holds its estimate, and a place among those in flight.
  const waiting = held(used(50));
  upstream.behave(waiting.behaviour);
  const running = [ask('ann'), ask('ann')];
  await eventually(() => waiting.waiting() === 2, 'two requests at the upstream');
  expectProblem(await ask('ann'), 429, 'api/too_many_requests');
  // 400 of 600 tokens are the lane's in the organisation, and 800 are taken.
  expectProblem(await ask('night'), 429, 'api/too_many_requests');
  const third = ask('bob');
  await eventually(() => waiting.waiting() === 3, 'a third request at the upstream');
  // 1,200 of the organisation's 1,500 tokens are taken, so 400 more do not fit, although bob has 600.
  const full = await ask('bob');
  expectProblem(full, 429, 'api/too_many_requests');
  waiting.release();
  expect((await Promise.all([...running, third])).map(({ status }) => status)).toEqual([200, 200, 200]);

  // The estimates went back: 150 tokens were used. 600 are the lane's.
  upstream.behave(used(100));
  await eventually(async () => (await ask('night')).status === 200, 'the settled tokens');

  // The provider refuses one account: only that one waits.
  upstream.behave(answer({ status: 429, headers: { 'retry-after': '30' } }));
  expectProblem(await ask('bob'), 429, 'provider/too_many_requests');
  upstream.behave(used(10));
  const before = upstream.seen.length;
  const paused = await ask('bob');
  expectProblem(paused, 429, 'provider/too_many_requests');
  expect(Number(paused.headers['retry-after'])).toBeGreaterThan(20);
  expect(upstream.seen.length).toBe(before);
  expect((await ask('ann')).status).toBe(200);
});
