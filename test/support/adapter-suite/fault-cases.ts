import {
  type AdapterCase,
  type AdapterFixture,
  type AdapterFixtureOptions,
  assertEqual,
  chunks,
  deferred,
  limitFields,
  readProblem,
  waitUntil,
} from './fixture.ts';

type Resolvers = NonNullable<AdapterFixtureOptions['resolvers']>;
type Stage = keyof Resolvers;

/** The resolver of `stage` fails once. The same request must succeed when it is sent again. */
function failsOnce(stage: Stage, how: () => unknown): Pick<AdapterCase, 'options' | 'run'> {
  let isFailing = true;
  const working: Record<Stage, () => unknown> = {
    account: () => 'a',
    route: () => 'POST /things/:id',
    cost: () => 1,
    idempotent: () => undefined,
  };
  const resolver = () => (isFailing ? how() : working[stage]());
  return {
    options: { resolvers: { [stage]: resolver } as Resolvers },
    async run(fixture) {
      isFailing = true;
      const reply = await fixture.send({ key: 'k' });
      assertEqual(readProblem(reply), [500, 'errors/unexpected_error']);
      assertEqual(
        [/secret/.test(reply.text), limitFields(reply), fixture.runs, await fixture.remaining()],
        [false, {}, 0, 1_000],
      );
      const failures = fixture.events.filter((event) => event.type === 'failure');
      assertEqual([failures.length, failures[0]?.requestId], [1, JSON.parse(reply.text).req_id]);
      isFailing = false;
      const retry = await fixture.send({ key: 'k' });
      assertEqual([retry.status, retry.headers.get('idempotency-replayed'), fixture.runs], [200, null, 1]);
    },
  };
}

const FAILURES: Record<string, () => unknown> = {
  throws: () => {
    throw new Error('secret');
  },
  rejects: () => Promise.reject(new Error('secret')),
};

const INVALID: readonly (readonly [Stage, string, unknown])[] = [
  ['account', 'a number', 7],
  ['account', 'an object', { id: 'a' }],
  ['route', 'a number', 7],
  ['cost', 'NaN', Number.NaN],
  ['cost', 'zero', 0],
];

const RESOLVER_CASES: readonly AdapterCase[] = [
  ...(['account', 'route', 'cost', 'idempotent'] as const).flatMap((stage) =>
    Object.entries(FAILURES).map(([fails, how]) => ({
      name: `if the ${stage} resolver ${fails}, the response is a 500, and nothing is charged or claimed`,
      ...failsOnce(stage, how),
    })),
  ),
  ...INVALID.map(([stage, what, value]) => ({
    name: `if the ${stage} resolver returns ${what}, the response is a 500, and nothing is charged or claimed`,
    ...failsOnce(stage, () => value),
  })),
];

/** The framework may choose which of two responses it sends. But the client and every retry must get the same one. */
async function assertOneOutcome(fixture: AdapterFixture, handler: AdapterFixture['handler']): Promise<void> {
  fixture.handler = handler;
  const first = await fixture.send({ key: 'k' }).catch(() => undefined);
  const retry = await fixture.send({ key: 'k' });
  // If the response broke off, the retry gets all of it.
  assertEqual([retry.status, retry.text], first ? [first.status, first.text] : [201, 'written']);
  assertEqual([retry.headers.get('idempotency-replayed'), fixture.runs], ['true', 1]);
}

/** Cases about handlers and resolvers that fail. */
export const FAULT_CASES: readonly AdapterCase[] = [
  ...RESOLVER_CASES,
  {
    name: "a handler fails before it writes: the framework's response shows the limits",
    async run(fixture) {
      fixture.handler = () => {
        throw new Error('before');
      };
      const reply = await fixture.send();
      assertEqual([reply.status >= 500, limitFields(reply)['x-ratelimit-remaining']], [true, '999']);
      assertEqual((await fixture.send()).status, reply.status);
    },
  },
  {
    name: 'I6: a handler fails before it writes: with a key, this is the outcome, and it is not executed again',
    async run(fixture) {
      fixture.handler = () => Promise.reject(new Error('before'));
      const [first, second] = [await fixture.send({ key: 'k' }), await fixture.send({ key: 'k' })];
      assertEqual([first.status, second.status, second.text], [500, 500, first.text]);
      assertEqual([second.headers.get('idempotency-replayed'), fixture.runs], ['true', 1]);
    },
  },
  {
    name: 'I7: a response breaks off: its client sees that, and the request is not executed again',
    async run(fixture) {
      fixture.handler = (_, write) =>
        write({
          status: 201,
          body: (async function* () {
            yield* chunks('half ', 'of ');
            throw new Error('during');
          })(),
        });
      const first = await fixture.send({ key: 'k' }).catch(() => 'broken');
      assertEqual(typeof first === 'string' || first.status >= 500, true);
      await waitUntil(() => fixture.idempotency.pending === 0, 'the outcome is stored');
      const second = await fixture.send({ key: 'k' });
      assertEqual(
        [second.status === 409 || second.status >= 500, second.text.startsWith('half'), fixture.runs],
        [true, false, 1],
      );
    },
  },
  {
    name: 'a handler fails after it wrote: the response that the client got is the outcome',
    run: (fixture) =>
      assertOneOutcome(fixture, async (_, write) => {
        await write({ status: 201, body: 'written' });
        throw new Error('after');
      }),
  },
  {
    name: 'a handler responds twice: the response that the client got is the outcome',
    run: (fixture) =>
      assertOneOutcome(fixture, async (_, write) => {
        await write({ status: 201, body: 'written' });
        await write({ status: 201, body: 'written again' });
      }),
  },
  {
    name: 'I9: a handler that does not respond holds its claim for maxRunMs; then the outcome is unknown to retries',
    options: { idempotency: { maxRunMs: 100, leaseMs: 300, waitMs: 0 } },
    async run(fixture) {
      const mayRespond = deferred();
      fixture.handler = async (_, write) => {
        await mayRespond.promise;
        await write({ status: 201, body: 'late response' });
      };
      const first = fixture.send({ key: 'k' });
      await waitUntil(() => fixture.runs === 1, 'the handler runs');
      const retry = () => fixture.send({ key: 'k' });
      assertEqual((await retry()).headers.get('retry-after'), '1');
      const isOrphaned = async () => {
        const reply = await retry();
        assertEqual(readProblem(reply), [409, 'errors/conflict']);
        const event = fixture.events.at(-1);
        const isOrphan = event?.type === 'idempotency' && event.outcome === 'orphan';
        assertEqual(reply.headers.has('retry-after'), !isOrphan);
        return isOrphan;
      };
      await waitUntil(isOrphaned, 'the claim is an orphan');
      mayRespond.resolve();
      assertEqual([(await first).text, (await retry()).text, fixture.runs], ['late response', 'late response', 1]);
    },
  },
];
