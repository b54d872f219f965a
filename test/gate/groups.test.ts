/** S31: groups of a request at a gate. */
import { expect, it } from 'vitest';
import type { GateEvent } from '../../src/gate/index.ts';
import { createGate, createLimiter, type GateOptions, type Limits } from '../../src/index.ts';
import { groupAccount, type WindowSetSource } from '../../src/limits/index.ts';
import { createMemoryAdjustments } from '../../src/memory.ts';
import { createSharedLimits } from '../../src/shared-limits/index.ts';

interface Request {
  readonly customer?: string;
}

const LIMITS = { default: ['5/1m'], groups: { customer: ['2/1h'] } } as const;

function gateOf(options: Partial<GateOptions<Request>> = {}) {
  const limiter = createLimiter({ limits: LIMITS, logger: false });
  const events: GateEvent[] = [];
  const gate = createGate<Request>({
    limiter,
    account: () => 'a',
    groups: ({ customer }) => (customer === undefined ? undefined : { customer }),
    onEvent: (event) => events.push(event),
    logger: false,
    ...options,
  });
  const answer = async (request: Request) => {
    const entry = await gate.enter(request);
    if (entry.kind === 'proceed') return { status: 200, detail: '', headers: entry.headers };
    const { status, body, headers } = entry.reply;
    return { status, detail: JSON.parse(body as string).detail as string, headers };
  };
  return { gate, limiter, events, answer };
}

it.each<[string, GateOptions<Request>['groups']]>([
  ['synchronous', ({ customer }) => (customer === undefined ? undefined : { customer })],
  ['asynchronous', async ({ customer }) => (customer === undefined ? undefined : { customer })],
])(
  'S31: the window of the group that rejects is shown, and the detail names the group: a resolver that is %s',
  async (_, groups) => {
    const { limiter, answer } = gateOf({ groups });
    expect(await answer({})).toMatchObject({ headers: { 'x-ratelimit-limit': '5', 'x-ratelimit-remaining': '4' } });
    for (const left of ['3', '2'])
      expect(await answer({ customer: 'cus_7' })).toMatchObject({ headers: { 'x-ratelimit-remaining': left } });
    const rejected = await answer({ customer: 'cus_7' });
    expect(rejected).toMatchObject({
      status: 429,
      detail: 'The rate limit of the group customer is used up; retry in 3600 s.',
      headers: { 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '0', 'retry-after': '3600' },
    });
    expect(JSON.stringify(rejected)).not.toContain('cus_7');
    expect(await limiter.peek({ account: 'a' })).toMatchObject([{ remaining: 2 }]);
    await limiter.block({ account: groupAccount('customer', 'cus_7') }, { forMs: 2_000, reason: 'unpaid' });
    expect((await answer({ customer: 'cus_7' })).detail).toBe(
      'Requests like this one are blocked for the group customer; retry in 2 s. Reason: unpaid',
    );
  },
);

it('S31: `describe` chooses the words for a group, and its failure is reported', async () => {
  const asked: string[] = [];
  const { limiter, answer } = gateOf({ describe: (group) => `your ${asked.push(group) && 'organisation'}` });
  await limiter.charge({ account: groupAccount('customer', 'cus_7'), cost: 1 });
  await limiter.consume({ account: 'a', cost: 4 });
  await limiter.reset({ account: 'a' });
  await answer({ customer: 'cus_7' });
  expect((await answer({ customer: 'cus_7' })).detail).toContain('The rate limit of your organisation is used up;');
  expect(asked).toEqual(['customer']);
  for (const describe of [
    () => {
      throw new Error('no words');
    },
    async () => 'later',
  ] as never[]) {
    const bad = gateOf({ describe });
    await bad.limiter.charge({ account: groupAccount('customer', 'cus_7'), cost: 2 });
    expect((await bad.answer({ customer: 'cus_7' })).detail).toContain(
      'The rate limit of the group customer is used up',
    );
    expect(bad.events).toContainEqual(expect.objectContaining({ type: 'failure', stage: 'describe' }));
  }
});

it('S31: the IETF fields name the windows of a group after it, and give them no partition key of the account', async () => {
  const { answer } = gateOf({ headers: 'ietf', partitionKey: () => 'a' });
  expect((await answer({ customer: 'cus_7' })).headers).toMatchObject({
    'ratelimit-policy': '"all-methods-1m";q=5;w=60;pk=:YQ==:, "customer:all-methods-1h";q=2;w=3600',
    ratelimit: '"all-methods-1m";r=4;t=60;pk=:YQ==:, "customer:all-methods-1h";r=1;t=3600',
  });
});

it.each([{ custmer: 'x' }, { customer: 7 }, 'cus_7', null])(
  'S31: groups that are not right are a 500, and charge nothing: %j',
  async (groups) => {
    const { limiter, answer, events } = gateOf({ groups: () => groups as never });
    expect(await answer({})).toMatchObject({ status: 500 });
    expect(events).toMatchObject([{ type: 'failure', stage: 'limits' }]);
    expect(await limiter.peek({ account: 'a' })).toMatchObject([{ remaining: 5 }]);
  },
);

it.each([
  ['limits', LIMITS],
  ['shared limits', createSharedLimits({ base: LIMITS, adjustments: createMemoryAdjustments() })],
])('S31: a gate without the resolver `groups`, on %s with groups, is refused at the start', (_, limits) => {
  const limiter = createLimiter({ limits, logger: false });
  const options = { limiter, account: () => 'a' };
  expect(() => createGate(options)).toThrow(
    'groups: must be a function of the request: without it, limits.groups of the limiter would never apply',
  );
  expect(createGate({ ...options, groups: () => undefined }).with({ groups: () => ({ customer: 'x' }) }).throws).toBe(
    false,
  );
});

it('S31: a gate with `groups` needs limits of groups, if the limits can be known', () => {
  const groups = () => ({ customer: 'x' });
  const create = (limits: Limits | WindowSetSource) =>
    createGate({ limiter: createLimiter({ limits }), account: () => 'a', groups });
  expect(() => create(['10/1m'])).toThrow('groups: the limits of the limiter have no groups: add limits.groups');
  const base = () => ['10/1m'];
  expect(() => create(base)).not.toThrow();
  const shared = createSharedLimits({ base, adjustments: createMemoryAdjustments() });
  expect(() => create(shared)).not.toThrow();
});

it('S31: `describe` needs `groups`', () => {
  const options = { limiter: createLimiter({ limits: ['10/1m'] }), account: () => 'a' };
  expect(() => createGate({ ...options, describe: () => 'your organisation' })).toThrow('describe: needs groups');
});
