import { type AdapterCase, assertEqual, limitFields, type OuterGateOptions, readProblem } from './fixture.ts';

/** Whatever the gate in front is told, it must recognise the answer of the gate behind it. */
const OUTER_GATES: Readonly<Record<string, OuterGateOptions>> = {
  'another gate': {},
  'a gate without fields': { headers: [] },
  'a gate with the fields of the IETF': { headers: 'ietf' },
  'a gate whose handler is the provider': { providerAnswers: true },
};

/** Cases about a gate behind another one. */
export const STACK_CASES: readonly AdapterCase[] = [
  ...Object.entries(OUTER_GATES).map(
    ([front, outer]): AdapterCase => ({
      name: `S8: behind ${front}, a rejection has the fields of the gate that rejected, and those only`,
      options: { limit: ['1/1m'], outer },
      async run(fixture) {
        await fixture.send();
        fixture.clock.advance(500);
        const rejected = await fixture.send();
        assertEqual(readProblem(rejected), [429, 'api/too_many_requests']);
        const window = { 'x-ratelimit-limit': '1', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '60' };
        assertEqual(limitFields(rejected), { 'retry-after': '60', ...window });
        const types = fixture.outerEvents.map(({ type }) => type);
        assertEqual([types, fixture.runs], [['decision', 'decision'], 1]);
      },
    }),
  ),
  {
    name: 'S8: a rejection of the gate in front never reaches the gate behind it',
    options: { outer: { limit: ['1/1m'] } },
    async run(fixture) {
      await fixture.send();
      const rejected = await fixture.send();
      assertEqual(limitFields(rejected)['retry-after'], '60');
      assertEqual([rejected.status, fixture.runs, await fixture.remaining()], [429, 1, 999]);
    },
  },
  {
    name: 'S6: of two gates, the one with the least left shows its window, once; if equal, the gate in front',
    options: { limit: ['2/1m'], outer: { limit: ['4/1m'] } },
    async run(fixture) {
      const shown: unknown[] = [];
      for (const account of ['a', 'b', 'c', 'd']) {
        fixture.handler = (_, write) => write({ headers: { 'X-RateLimit-Limit': '7' }, body: 'ok' });
        shown.push(limitFields(await fixture.send({ headers: { 'x-account': account } })));
      }
      const fields = (limit: number, remaining: number) => ({
        'x-ratelimit-limit': String(limit),
        'x-ratelimit-remaining': String(remaining),
        'x-ratelimit-reset': '60',
      });
      // Left behind: 1 each time. Left in front: 3, 2, 1, 0.
      assertEqual(shown, [fields(2, 1), fields(2, 1), fields(4, 1), fields(4, 0)]);
    },
  },
  {
    name: 'S6: behind a gate that shows no fields, and in front of a request without limits, the other gate is shown',
    options: { limit: ['9/1m'], onNoAccount: 'pass', outer: { limit: ['4/1m'], headers: [] } },
    async run(fixture) {
      assertEqual(limitFields(await fixture.send())['x-ratelimit-remaining'], '8');
      assertEqual(limitFields(await fixture.send({ headers: { 'x-account': 'none' } })), {});
    },
  },
  {
    name: "S16: a handler's own 429 passes through two gates untouched",
    options: { outer: {} },
    async run(fixture) {
      fixture.handler = (_, write) => write({ status: 429, headers: { 'retry-after': '9' }, body: 'slow' });
      assertEqual(limitFields(await fixture.send()), { 'retry-after': '9' });
    },
  },
  {
    name: 'I6: the rejection of a gate behind the one that claimed the key releases the key',
    options: { limit: ['1/1m'], outer: {} },
    async run(fixture) {
      await fixture.send({ key: 'first' });
      const rejected = await fixture.send({ key: 'k' });
      assertEqual([rejected.status, limitFields(rejected)['retry-after']], [429, '60']);
      fixture.clock.advance(60_000);
      const retry = await fixture.send({ key: 'k' });
      assertEqual([retry.status, retry.headers.get('idempotency-replayed'), fixture.runs], [200, null, 2]);
    },
  },
  failsBehindOnce(),
];

function failsBehindOnce(): AdapterCase {
  let failures = 0;
  const cost = () => {
    if (failures++ === 0) throw new Error('secret');
    return 1;
  };
  return {
    name: 'I6: an error answer of a gate behind the one that claimed the key releases the key',
    options: { outer: {}, resolvers: { cost } },
    async run(fixture) {
      failures = 0;
      assertEqual(readProblem(await fixture.send({ key: 'k' })), [500, 'errors/unexpected_error']);
      const retry = await fixture.send({ key: 'k' });
      assertEqual([retry.status, retry.headers.get('idempotency-replayed'), fixture.runs], [200, null, 1]);
    },
  };
}
