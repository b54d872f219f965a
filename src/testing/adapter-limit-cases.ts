import { type AdapterCase, equal, limitFields, pieces, problemOf } from './adapter-world.ts';

/** Limits, and what shows of them on answers. */
export const LIMIT_CASES: readonly AdapterCase[] = [
  {
    name: 'S6: an accepted request reaches the handler, and its answer shows the window',
    options: { limit: ['5/1m', '100/1d'] },
    async run(world) {
      world.handler = (_, write) => write({ status: 201, headers: { 'x-own': '1' }, body: 'made' });
      const reply = await world.ask();
      equal([reply.status, reply.text, reply.headers.get('x-own'), world.runs], [201, 'made', '1', 1]);
      equal(limitFields(reply), {
        'x-ratelimit-limit': '100',
        'x-ratelimit-remaining': '99',
        'x-ratelimit-reset': '86400',
      });
    },
  },
  {
    name: 'S5, S8: a rejected one gets 429 with retry-after, charges nothing, and never reaches the handler',
    options: { limit: ['2/1m', '100/1d'] },
    async run(world) {
      await world.ask();
      await world.ask();
      world.clock.advance(500);
      const rejected = await world.ask();
      equal(problemOf(rejected), [429, 'api/too_many_requests']);
      const window = { 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '60' };
      equal(limitFields(rejected), { 'retry-after': '60', ...window });
      equal(
        [world.runs, (await world.limiter.peek({ account: 'a', route: 'POST /things/:id' }))[1]?.remaining],
        [2, 98],
      );
    },
  },
  {
    name: 'S7: waiting for retry-after gets past the window, and a second less does not',
    options: { limit: ['1/10s'] },
    async run(world) {
      await world.ask();
      world.clock.advance(8_500);
      const seconds = Number((await world.ask()).headers.get('retry-after'));
      equal(seconds, 2);
      world.clock.advance((seconds - 1) * 1_000);
      equal((await world.ask()).status, 429);
      world.clock.advance(1_000);
      equal((await world.ask()).status, 200);
    },
  },
  {
    name: 'S6: the fields stand on every answer of the handler, whatever its status and however it is written',
    async run(world) {
      for (const [status, body] of [
        [204, undefined],
        [304, undefined],
        [404, 'none'],
        [500, new Uint8Array([0, 255])],
        [200, pieces('a', 'b')],
        [503, ''],
      ] as const) {
        world.handler = (_, write) => write({ status, body, headers: { 'X-RateLimit-Limit': '7' } });
        const reply = await world.ask();
        equal([status, limitFields(reply)['x-ratelimit-limit']], [reply.status, '1000']);
      }
      equal([world.runs, await world.remaining()], [6, 994]);
    },
  },
  {
    name: "S16: a handler's 429 is the provider's: no rate-limit field on it, and it stays charged",
    async run(world) {
      world.handler = (_, write) =>
        write({ status: 429, headers: { 'Retry-After': '9', 'x-ratelimit-limit': '7', 'x-own': '1' }, body: 'slow' });
      const reply = await world.ask();
      equal([reply.status, reply.text, reply.headers.get('x-own'), limitFields(reply)], [429, 'slow', '1', {}]);
      equal([await world.remaining(), world.events.at(-1)?.type], [999, 'provider_rejected']);
    },
  },
  {
    name: 'S1: accounts do not share, nor do methods; what differs in the URL alone does',
    async run(world) {
      await world.ask({ path: '/things/1' });
      const remaining = async (ask: object) => limitFields(await world.ask(ask))['x-ratelimit-remaining'];
      equal(await remaining({ path: '/things/2?page=3' }), '998');
      equal(await remaining({ headers: { 'x-account': 'b' } }), '999');
      equal(await remaining({ method: 'PUT' }), '999');
      equal(await remaining({ method: 'GET' }), '999');
      equal(await world.remaining('POST /things/:id'), 998);
    },
  },
  {
    name: 'a request that is not limited passes, with what the handler says of limits',
    async run(world) {
      world.handler = (_, write) => write({ headers: { 'x-ratelimit-limit': '7' }, body: 'ok' });
      const reply = await world.ask({ headers: { 'x-account': 'none' } });
      equal([reply.status, limitFields(reply), await world.remaining()], [200, { 'x-ratelimit-limit': '7' }, 1_000]);
      equal(world.events.at(-1)?.type, 'skipped');
    },
  },
  {
    name: 'S11: a route with options of its own is paced by them',
    async run(world) {
      const reply = await world.ask({ path: '/priced/1' });
      equal([reply.status, limitFields(reply)['x-ratelimit-remaining']], [200, '998']);
      equal([await world.remaining('POST /own'), await world.remaining()], [998, 1_000]);
    },
  },
  {
    name: 'S5: of 120 requests at once exactly the limit pass',
    options: { limit: ['40/1m'] },
    async run(world) {
      const replies = await Promise.all(Array.from({ length: 120 }, () => world.ask()));
      equal([replies.filter(({ status }) => status === 200).length, world.runs], [40, 40]);
    },
  },
];
