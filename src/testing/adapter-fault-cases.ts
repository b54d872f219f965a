import {
  type AdapterCase,
  type AdapterWorld,
  type AdapterWorldOptions,
  equal,
  limitFields,
  pieces,
  problemOf,
  signal,
  until,
} from './adapter-world.ts';

type Resolvers = NonNullable<AdapterWorldOptions['resolvers']>;
type Stage = keyof Resolvers;

/** Each breaks once: the same request, sent again, is to go through. */
function broken(stage: Stage, how: () => unknown): Pick<AdapterCase, 'options' | 'run'> {
  let isBroken = true;
  const working: Record<Stage, () => unknown> = {
    account: () => 'a',
    route: () => 'POST /things/:id',
    cost: () => 1,
    idempotent: () => undefined,
  };
  const resolver = () => (isBroken ? how() : working[stage]());
  return {
    options: { resolvers: { [stage]: resolver } as Resolvers },
    async run(world) {
      isBroken = true;
      const reply = await world.ask({ key: 'k' });
      equal(problemOf(reply), [500, 'errors/unexpected_error']);
      equal(
        [/secret/.test(reply.text), limitFields(reply), world.runs, await world.remaining()],
        [false, {}, 0, 1_000],
      );
      const failures = world.events.filter((event) => event.type === 'failure');
      equal([failures.length, failures[0]?.requestId], [1, JSON.parse(reply.text).req_id]);
      isBroken = false;
      const retry = await world.ask({ key: 'k' });
      equal([retry.status, retry.headers.get('idempotency-replayed'), world.runs], [200, null, 1]);
    },
  };
}

const WAYS: Record<string, () => unknown> = {
  throws: () => {
    throw new Error('secret');
  },
  rejects: () => Promise.reject(new Error('secret')),
};

const NONSENSE: readonly (readonly [Stage, string, unknown])[] = [
  ['account', 'a number', 7],
  ['account', 'an object', { id: 'a' }],
  ['route', 'a number', 7],
  ['cost', 'no number', Number.NaN],
  ['cost', 'nothing', 0],
];

const BROKEN: readonly AdapterCase[] = [
  ...(['account', 'route', 'cost', 'idempotent'] as const).flatMap((stage) =>
    Object.entries(WAYS).map(([way, how]) => ({
      name: `a resolver of ${stage} that ${way} is a 500, and nothing is charged or claimed`,
      ...broken(stage, how),
    })),
  ),
  ...NONSENSE.map(([stage, what, value]) => ({
    name: `a resolver of ${stage} that gives ${what} is a 500, and nothing is charged or claimed`,
    ...broken(stage, () => value),
  })),
];

/** Which of two answers counts is the framework's affair; that its client and every retry get the same one is not. */
async function answersOnce(world: AdapterWorld, handler: AdapterWorld['handler']): Promise<void> {
  world.handler = handler;
  const first = await world.ask({ key: 'k' }).catch(() => undefined);
  const retry = await world.ask({ key: 'k' });
  // A client that saw it break off gets all of it from its retry.
  equal([retry.status, retry.text], first ? [first.status, first.text] : [201, 'written']);
  equal([retry.headers.get('idempotency-replayed'), world.runs], ['true', 1]);
}

/** Handlers and resolvers that fail. */
export const FAULT_CASES: readonly AdapterCase[] = [
  ...BROKEN,
  {
    name: "a handler that fails before it writes: the framework's answer shows the limits",
    async run(world) {
      world.handler = () => {
        throw new Error('before');
      };
      const reply = await world.ask();
      equal([reply.status >= 500, limitFields(reply)['x-ratelimit-remaining']], [true, '999']);
      equal((await world.ask()).status, reply.status);
    },
  },
  {
    name: 'I6: with a key, that failure is its outcome: it is not executed again',
    async run(world) {
      world.handler = () => Promise.reject(new Error('before'));
      const [first, second] = [await world.ask({ key: 'k' }), await world.ask({ key: 'k' })];
      equal([first.status, second.status, second.text], [500, 500, first.text]);
      equal([second.headers.get('idempotency-replayed'), world.runs], ['true', 1]);
    },
  },
  {
    name: 'I7: an answer that breaks off breaks off for its client, and is not executed again',
    async run(world) {
      world.handler = (_, write) =>
        write({
          status: 201,
          body: (async function* () {
            yield* pieces('half ', 'of ');
            throw new Error('during');
          })(),
        });
      const first = await world.ask({ key: 'k' }).catch(() => 'broken');
      equal(typeof first === 'string' || first.status >= 500, true);
      await until(() => world.idempotency.pending === 0, 'the outcome is kept');
      const second = await world.ask({ key: 'k' });
      equal(
        [second.status === 409 || second.status >= 500, second.text.startsWith('half'), world.runs],
        [true, false, 1],
      );
    },
  },
  {
    name: 'a handler that fails after it wrote: what its client got is the outcome',
    run: (world) =>
      answersOnce(world, async (_, write) => {
        await write({ status: 201, body: 'written' });
        throw new Error('after');
      }),
  },
  {
    name: 'a handler that answers twice: what its client got is the outcome',
    run: (world) =>
      answersOnce(world, async (_, write) => {
        await write({ status: 201, body: 'written' });
        await write({ status: 201, body: 'written again' });
      }),
  },
  {
    name: 'I9: a handler that never answers holds its key for maxRunMs; then its retries are told that nobody knows its outcome',
    options: { idempotency: { maxRunMs: 100, leaseMs: 300, waitMs: 0 } },
    async run(world) {
      const go = signal();
      world.handler = async (_, write) => {
        await go.given;
        await write({ status: 201, body: 'after all' });
      };
      const first = world.ask({ key: 'k' });
      await until(() => world.runs === 1, 'the handler runs');
      const retry = () => world.ask({ key: 'k' });
      equal((await retry()).headers.get('retry-after'), '1');
      const isGivenUp = async () => {
        const reply = await retry();
        equal(problemOf(reply), [409, 'errors/conflict']);
        const event = world.events.at(-1);
        const isOrphan = event?.type === 'idempotency' && event.outcome === 'orphan';
        equal(reply.headers.has('retry-after'), !isOrphan);
        return isOrphan;
      };
      await until(isGivenUp, 'the key is given up');
      go.give();
      equal([(await first).text, (await retry()).text, world.runs], ['after all', 'after all', 1]);
    },
  },
];
