import { type AdapterCase, assertEqual, chunks, limitFields, readProblem, waitUntil } from './fixture.ts';

/** A 429 of the handler's own. */
const OWN_429 = {
  status: 429,
  headers: { 'Retry-After': '9', 'x-ratelimit-limit': '7', 'x-own': '1' },
  body: 'slow',
};

/** Cases about limits, and about the rate-limit fields of responses. */
export const LIMIT_CASES: readonly AdapterCase[] = [
  {
    name: 'S6: an accepted request reaches the handler, and its response shows the window',
    options: { limit: ['5/1m', '100/1d'] },
    async run(fixture) {
      fixture.handler = (_, write) => write({ status: 201, headers: { 'x-own': '1' }, body: 'made' });
      const reply = await fixture.send();
      assertEqual([reply.status, reply.text, reply.headers.get('x-own'), fixture.runs], [201, 'made', '1', 1]);
      assertEqual(limitFields(reply), {
        'x-ratelimit-limit': '100',
        'x-ratelimit-remaining': '99',
        'x-ratelimit-reset': '86400',
      });
    },
  },
  {
    name: 'S5, S8: a rejected request gets 429 with retry-after, charges nothing, and never reaches the handler',
    options: { limit: ['2/1m', '100/1d'] },
    async run(fixture) {
      await fixture.send();
      await fixture.send();
      fixture.clock.advance(500);
      const rejected = await fixture.send();
      assertEqual(readProblem(rejected), [429, 'api/too_many_requests']);
      const window = { 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '60' };
      assertEqual(limitFields(rejected), { 'retry-after': '60', ...window });
      assertEqual(
        [fixture.runs, (await fixture.limiter.peek({ account: 'a', route: 'POST /things/:id' }))[1]?.remaining],
        [2, 98],
      );
    },
  },
  {
    name: 'S8, S11: a request that never fits gets 422 without retry-after, and never reaches the handler',
    options: { limit: ['0/1m'] },
    async run(fixture) {
      const rejected = await fixture.send();
      assertEqual(readProblem(rejected), [422, 'api/cost_exceeds_limit']);
      const window = { 'x-ratelimit-limit': '0', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '60' };
      assertEqual([limitFields(rejected), fixture.runs], [window, 0]);
    },
  },
  {
    name: 'S7: a request after retry-after is accepted, and a request one second earlier is not',
    options: { limit: ['1/10s'] },
    async run(fixture) {
      await fixture.send();
      fixture.clock.advance(8_500);
      const seconds = Number((await fixture.send()).headers.get('retry-after'));
      assertEqual(seconds, 2);
      fixture.clock.advance((seconds - 1) * 1_000);
      assertEqual((await fixture.send()).status, 429);
      fixture.clock.advance(1_000);
      assertEqual((await fixture.send()).status, 200);
    },
  },
  {
    name: 'S6: every response of the handler has the fields, whatever its status and however it is written',
    async run(fixture) {
      for (const [status, body] of [
        [204, undefined],
        [304, undefined],
        [404, 'none'],
        [500, new Uint8Array([0, 255])],
        [200, chunks('a', 'b')],
        [503, ''],
      ] as const) {
        fixture.handler = (_, write) => write({ status, body, headers: { 'X-RateLimit-Limit': '7' } });
        const reply = await fixture.send();
        assertEqual([status, limitFields(reply)['x-ratelimit-limit']], [reply.status, '1000']);
      }
      assertEqual([fixture.runs, await fixture.remaining()], [6, 994]);
    },
  },
  {
    name: "S16: a handler's own 429 passes untouched, with its retry-after, and stays charged",
    async run(fixture) {
      fixture.handler = (_, write) => write(OWN_429);
      const reply = await fixture.send();
      assertEqual(
        [reply.status, reply.text, reply.headers.get('x-own'), limitFields(reply)],
        [429, 'slow', '1', { 'retry-after': '9', 'x-ratelimit-limit': '7' }],
      );
      assertEqual([await fixture.remaining(), fixture.events.at(-1)?.type], [999, 'decision']);
    },
  },
  {
    name: "S16: providerAnswers decides per response whether its 429 is the provider's",
    options: { providerAnswers: (response) => response.header('x-own') === '1' },
    async run(fixture) {
      for (const [own, fields, type] of [
        ['0', { 'retry-after': '9', 'x-ratelimit-limit': '7' }, 'decision'],
        ['1', { 'retry-after': '9' }, 'provider_rejected'],
      ] as const) {
        fixture.handler = (_, write) => write({ ...OWN_429, headers: { ...OWN_429.headers, 'x-own': own } });
        assertEqual([limitFields(await fixture.send()), fixture.events.at(-1)?.type], [fields, type]);
      }
    },
  },
  {
    name: "S16: a handler's 429 that counts as the provider's keeps its retry-after alone, and it stays charged",
    options: { providerAnswers: true },
    async run(fixture) {
      fixture.handler = (_, write) => write(OWN_429);
      const reply = await fixture.send();
      assertEqual(
        [reply.status, reply.text, reply.headers.get('x-own'), limitFields(reply)],
        [429, 'slow', '1', { 'retry-after': '9' }],
      );
      assertEqual([await fixture.remaining(), fixture.events.at(-1)?.type], [999, 'provider_rejected']);
    },
  },
  {
    name: "S16: with 'pass', the provider's 429 keeps every field",
    options: { providerAnswers: 'pass' },
    async run(fixture) {
      fixture.handler = (_, write) => write(OWN_429);
      assertEqual(limitFields(await fixture.send()), { 'retry-after': '9', 'x-ratelimit-limit': '7' });
      assertEqual(fixture.events.at(-1)?.type, 'provider_rejected');
    },
  },
  {
    name: "S30: the provider's 429 that a handler relays pauses its account, with and without a key",
    options: { cooldown: true },
    async run(fixture) {
      fixture.handler = (_, write) => write(OWN_429);
      for (const key of [undefined, 'key_1']) {
        const relayed = await fixture.send({ key });
        assertEqual([relayed.status, relayed.text, limitFields(relayed)], [429, 'slow', { 'retry-after': '9' }]);
        const { runs } = fixture;
        const paused = await fixture.send({ key });
        assertEqual(readProblem(paused), [429, 'provider/too_many_requests']);
        assertEqual([limitFields(paused), fixture.runs], [{ 'retry-after': '9' }, runs]);
        await fixture.limiter.unblock({ account: 'a', route: 'POST /things/:id' });
      }
    },
  },
  {
    name: 'S13: finalCost settles the charge by the status and the fields of the response, with and without a key',
    options: {
      finalCost: ({ status, header }) => (status >= 500 ? 0 : header('X-Cost') === undefined ? undefined : 5),
    },
    async run(fixture) {
      let left = 1_000;
      for (const [key, status, headers, cost] of [
        [undefined, 200, {}, 1],
        [undefined, 200, { 'x-cost': '5' }, 5],
        [undefined, 503, { 'x-cost': '5' }, 0],
        ['key_1', 200, { 'X-COST': '5' }, 5],
        // A replay: the handler is not called.
        ['key_1', 200, {}, 0],
        ['key_2', 503, {}, 0],
      ] as const) {
        fixture.handler = (_, write) => write({ status, headers, body: 'done' });
        const reply = await fixture.send(key === undefined ? {} : { key });
        assertEqual(reply.status, status);
        left -= cost;
        await waitUntil(async () => (await fixture.remaining()) === left, `${left} remain`);
      }
      assertEqual(fixture.runs, 5);
    },
  },
  {
    name: 'S1: every account and every method has its own count; URLs of one route share a count',
    async run(fixture) {
      await fixture.send({ path: '/things/1' });
      const remaining = async (request: object) => limitFields(await fixture.send(request))['x-ratelimit-remaining'];
      assertEqual(await remaining({ path: '/things/2?page=3' }), '998');
      assertEqual(await remaining({ headers: { 'x-account': 'b' } }), '999');
      assertEqual(await remaining({ method: 'PUT' }), '999');
      assertEqual(await remaining({ method: 'GET' }), '999');
      assertEqual(await fixture.remaining('POST /things/:id'), 998);
    },
  },
  {
    name: 'a request without an account gets 401; the handler does not run, and nothing is charged or claimed',
    async run(fixture) {
      for (const key of [undefined, 'k']) {
        const reply = await fixture.send({ headers: { 'x-account': 'none' }, ...(key && { key }) });
        assertEqual([readProblem(reply), limitFields(reply)], [[401, 'errors/missing_credentials'], {}]);
      }
      assertEqual([fixture.runs, await fixture.remaining()], [0, 1_000]);
      assertEqual(
        fixture.events.map(({ type }) => type),
        ['refused', 'refused'],
      );
      // A key that had been claimed, even if it was released, would refuse another body.
      const other = await fixture.send({ key: 'k', body: '{"b":2}' });
      assertEqual([other.status, other.headers.get('idempotency-replayed'), fixture.runs], [200, null, 1]);
    },
  },
  {
    name: 'a request that is denied gets 403 with the reason; the handler does not run, and nothing is charged',
    options: { deny: () => 'Your contract has ended.' },
    async run(fixture) {
      const reply = await fixture.send({ key: 'k' });
      assertEqual(readProblem(reply), [403, 'errors/resource_access_restricted']);
      assertEqual([JSON.parse(reply.text).detail, limitFields(reply)], ['Your contract has ended.', {}]);
      assertEqual([fixture.runs, await fixture.remaining()], [0, 1_000]);
    },
  },
  {
    name: 'with onNoAccount: pass, a request without an account has no limit, and keeps the fields of the handler',
    options: { onNoAccount: 'pass' },
    async run(fixture) {
      fixture.handler = (_, write) => write({ headers: { 'x-ratelimit-limit': '7' }, body: 'ok' });
      const reply = await fixture.send({ headers: { 'x-account': 'none' } });
      assertEqual(
        [reply.status, limitFields(reply), await fixture.remaining()],
        [200, { 'x-ratelimit-limit': '7' }, 1_000],
      );
      assertEqual(fixture.events.at(-1)?.type, 'skipped');
    },
  },
  {
    name: 'S11: a route with its own options is limited by them',
    async run(fixture) {
      const reply = await fixture.send({ path: '/priced/1' });
      assertEqual([reply.status, limitFields(reply)['x-ratelimit-remaining']], [200, '998']);
      assertEqual([await fixture.remaining('POST /own'), await fixture.remaining()], [998, 1_000]);
    },
  },
  {
    name: 'S2: the limit of a route applies in front of All methods, and only to this route',
    async run(fixture) {
      for (let i = 0; i < 2; i++) assertEqual((await fixture.send({ path: `/priced/${i}` })).status, 200);
      const rejected = await fixture.send({ path: '/priced/3' });
      assertEqual([rejected.status, limitFields(rejected)['x-ratelimit-limit']], [429, '4']);
      assertEqual((await fixture.send()).status, 200);
    },
  },
  {
    name: 'S5: of 120 simultaneous requests, exactly as many as the limit are accepted',
    options: { limit: ['40/1m'] },
    async run(fixture) {
      const replies = await Promise.all(Array.from({ length: 120 }, () => fixture.send()));
      assertEqual([replies.filter(({ status }) => status === 200).length, fixture.runs], [40, 40]);
    },
  },
];
