import { Pool } from 'pg';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createAddressGate } from '../../src/address/gate.ts';
import type { Decision } from '../../src/core/decision.ts';
import { decorateStore } from '../../src/core/decorate-store.ts';
import { MisuseLog, type MisuseWarning } from '../../src/core/misuse.ts';
import type { LimitStore } from '../../src/core/ports.ts';
import { createWindowSet } from '../../src/core/window-set.ts';
import { LatestLimiters } from '../../src/limits/latest-limiters.ts';
import { createLimiter } from '../../src/limits/limiter.ts';
import { LimiterChecks } from '../../src/limits/limiter-checks.ts';
import type { LimiterOptions } from '../../src/limits/ports.ts';
import { createReceipts } from '../../src/limits/receipts.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createPostgresStore } from '../../src/stores/postgres/limits.ts';
import { createRedisStore } from '../../src/stores/redis/limits.ts';

const LIMITS = { allMethods: ['100000/1m'] };

/** A limiter, and the warnings that it logs. */
function watched(options: Partial<LimiterOptions> = {}) {
  const warnings: MisuseWarning[] = [];
  const logger = (_: string, warning: unknown): void => void warnings.push(warning as MisuseWarning);
  const limiter = createLimiter({ store: createMemoryStore(), limits: LIMITS, logger, ...options });
  return { limiter, warnings, codes: () => warnings.map(({ code }) => code) };
}

const consume = (limiter: ReturnType<typeof watched>['limiter'], times: number, route = 'r') => {
  for (let i = 0; i < times; i++) limiter.consumeSync({ account: 'a', route });
};
const consumeOfGoogle = (limiter: ReturnType<typeof watched>['limiter'], times: number, route: string) => {
  for (let i = 0; i < times; i++) limiter.consumeSync({ account: 'a', route, provider: 'google' });
};

// docs/misuse.md has an example with limiters, in a process of its own.
describe('HG_LIMITER_PER_REQUEST', () => {
  /** The limiters of a process. */
  function newProcess() {
    const latest = new LatestLimiters();
    const codes: string[] = [];
    const misuse = () => new MisuseLog((_, warning) => void codes.push((warning as MisuseWarning).code));
    const newLimiter = () => new LimiterChecks(misuse(), {}, latest);
    const windowSet = createWindowSet([{ max: 1, durationMs: 1 }], []);
    const decides = (limiter: LimiterChecks, account = 'a', route = 'r') =>
      limiter.decides({ account }, route, windowSet);
    return { newLimiter, decides, codes };
  }

  it('is logged once, when ten limiters in a row each began with the same account and route', () => {
    const { newLimiter, decides, codes } = newProcess();
    for (let i = 0; i < 9; i++) decides(newLimiter());
    expect(codes).toEqual([]);
    for (let i = 0; i < 30; i++) decides(newLimiter());
    expect(codes).toEqual(['HG_LIMITER_PER_REQUEST']);
  });

  it('is also logged if another limiter is used in between, as for addresses', () => {
    const { newLimiter, decides, codes } = newProcess();
    const perAddress = newLimiter();
    for (let i = 0; i < 11; i++) {
      decides(perAddress, '192.0.2.1', 'any');
      decides(newLimiter());
    }
    expect(codes).toEqual(['HG_LIMITER_PER_REQUEST']);
  });

  it('is not logged if all were created before the first request, such as one per route', () => {
    const { newLimiter, decides, codes } = newProcess();
    const limiters = Array.from({ length: 30 }, newLimiter);
    for (const limiter of limiters) decides(limiter, '192.0.2.1', '*');
    expect(codes).toEqual([]);
  });

  it('is logged if accounts alternate', () => {
    const { newLimiter, decides, codes } = newProcess();
    for (let i = 0; i < 60; i++) decides(newLimiter(), `user_${i % 50}`);
    expect(codes).toEqual(['HG_LIMITER_PER_REQUEST']);
  });

  it('is not logged if the limiters of the accounts last', () => {
    const { newLimiter, decides, codes } = newProcess();
    for (let i = 0; i < 60; i++) {
      const limiter = newLimiter();
      for (let n = 0; n < 3; n++) decides(limiter, `user_${i % 5}`);
    }
    expect(codes).toEqual([]);
  });

  it('is logged if two requests at a time create their limiters', () => {
    const { newLimiter, decides, codes } = newProcess();
    for (let i = 0; i < 20; i++) for (const limiter of [newLimiter(), newLimiter()]) decides(limiter);
    expect(codes).toEqual(['HG_LIMITER_PER_REQUEST']);
  });

  it('is not logged for limiters of different accounts or routes, or that decide again', () => {
    const { newLimiter, decides, codes } = newProcess();
    for (let i = 0; i < 30; i++) decides(newLimiter(), `tenant_${i}`, 'r');
    for (let i = 0; i < 30; i++) decides(newLimiter(), 'a', `r${i}`);
    for (let i = 0; i < 30; i++) {
      const limiter = newLimiter();
      for (let n = 0; n < 3; n++) decides(limiter);
    }
    expect(codes).toEqual([]);
  });
});

describe('HG_SHARED_PREFIX', () => {
  it('is logged if two limiters with different limits have one store', () => {
    const store = createMemoryStore();
    expect(watched({ store }).codes()).toEqual([]);
    expect(watched({ store }).codes()).toEqual([]);
    expect(watched({ store, limits: { allMethods: ['1/1m'] } }).codes()).toEqual(['HG_SHARED_PREFIX']);
  });

  it('is logged if two stores have one Redis client and prefix, but not for two prefixes or clients', () => {
    const client = () => ({ evalshaBuffer: vi.fn(), evalBuffer: vi.fn() }) as never;
    const [one, another] = [client(), client()];
    const codesOf = (store: LimitStore, max: number) =>
      watched({ store, limits: { allMethods: [`${max}/1m`] } }).codes();
    expect(codesOf(createRedisStore(one), 1)).toEqual([]);
    expect(codesOf(createRedisStore(one, { prefix: 'other' }), 2)).toEqual([]);
    expect(codesOf(createRedisStore(another), 3)).toEqual([]);
    expect(codesOf(createRedisStore(one), 1)).toEqual([]);
    expect(codesOf(createRedisStore(one), 4)).toEqual(['HG_SHARED_PREFIX']);
  });

  it.each([
    ['ioredis', { host: 'db', port: 6380, db: 1 }, { db: 2 }],
    ['node-redis', { socket: { host: 'db', port: 6380 }, database: 1 }, { database: 2 }],
    ['a URL', { url: 'redis://user:hunter2@db/1' }, { url: 'redis://db/2' }],
  ])('is logged for two clients of one server, by the options of %s', (_, options, others) => {
    const client = (given: object) => ({ evalshaBuffer: vi.fn(), evalBuffer: vi.fn(), options: given }) as never;
    const prefix = String(Object.keys(options));
    const codesOf = (given: object, max: number) =>
      watched({ store: createRedisStore(client(given), { prefix }), limits: [`${max}/1m`] }).codes();
    expect(codesOf(options, 1)).toEqual([]);
    expect(codesOf({ ...options, ...others }, 2)).toEqual([]);
    expect(codesOf({ ...options }, 1)).toEqual([]);
    expect(codesOf({ ...options }, 3)).toEqual(['HG_SHARED_PREFIX']);
  });

  it('is logged for two pools of one database, and one schema', () => {
    const pool = (database: string) => new Pool({ connectionString: `postgres://user:hunter2@db/${database}` });
    const codesOf = (database: string, max: number, schema?: string) =>
      watched({ store: createPostgresStore(pool(database), { schema }), limits: [`${max}/1m`] }).codes();
    expect([codesOf('one', 1), codesOf('two', 2), codesOf('one', 3, 'other')]).toEqual([[], [], []]);
    expect(codesOf('one', 4)).toEqual(['HG_SHARED_PREFIX']);
  });

  it('functions are equal limits only if they are the same function', () => {
    const store = createMemoryStore();
    const limits = () => LIMITS;
    expect(watched({ store, limits }).codes()).toEqual([]);
    expect(watched({ store, limits }).codes()).toEqual([]);
    expect(watched({ store, limits: () => LIMITS }).codes()).toEqual(['HG_SHARED_PREFIX']);
  });

  it('is not logged with validate: false', () => {
    const store = createMemoryStore();
    watched({ store });
    expect(watched({ store, limits: { allMethods: ['1/1m'] }, validate: false }).codes()).toEqual([]);
  });
});

describe('HG_ROUTE_NEVER_SEEN', () => {
  const limits = {
    default: { allMethods: ['100000/1m'], routes: { 'POST /mails': ['100000/1m'], 'GET /chats': ['9/1m'] } },
    providers: { google: { routes: { 'POST /mail': ['9/1m'] } } },
  };

  it('is logged after 1,000 decisions, with the routes that no request had and the names that requests had', () => {
    const { limiter, warnings } = watched({ limits });
    consumeOfGoogle(limiter, 999, 'POST /mails');
    expect(warnings).toEqual([]);
    consumeOfGoogle(limiter, 500, 'POST /mails');
    expect(warnings).toMatchObject([
      {
        code: 'HG_ROUTE_NEVER_SEEN',
        message: expect.stringMatching(
          /first 1000 requests had none .*: "GET \/chats", "POST \/mail"\. They had "POST \/mails"\.$/,
        ),
      },
    ]);
  });

  it('is not logged if each route had a request, or if no route has a limit of its own', () => {
    const { limiter, codes } = watched({ limits });
    consumeOfGoogle(limiter, 1, 'GET /chats');
    consume(limiter, 1, 'POST /mail');
    consume(limiter, 2_000, 'POST /mails');
    expect(codes()).toEqual([]);
    const general = watched();
    consume(general.limiter, 2_000);
    expect(general.codes()).toEqual([]);
  });
});

describe('HG_TOO_MANY_ROUTES', () => {
  const ask = (limiter: ReturnType<typeof watched>['limiter'], requests: number, names: number) => {
    for (let i = 0; i < requests; i++)
      limiter.consumeSync({ account: 'a', route: `GET /users/${i % names}?token=hunter2` });
  };

  it('is logged once after more than 1,000 names, and shows no query', () => {
    const { limiter, warnings } = watched();
    ask(limiter, 1_000, 1_000_000);
    expect(warnings).toEqual([]);
    ask(limiter, 10_000, 1_000_000);
    expect(warnings).toMatchObject([{ code: 'HG_TOO_MANY_ROUTES', message: expect.stringContaining('GET /users/') }]);
    expect(warnings[0]?.message).not.toMatch('hunter2');
  });

  it('is not logged for 1,000 names', () => {
    const { limiter, codes } = watched();
    ask(limiter, 100_000, 1_000);
    expect(codes()).toEqual([]);
  });
});

describe('HG_PROVIDER_WITHOUT_LIMITS', () => {
  const limits = { default: LIMITS, providers: { google: LIMITS, quiet: {} } };

  it('is logged once if a request names a provider that has no limits, while others have some', () => {
    const { limiter, warnings } = watched({ limits });
    for (const provider of ['google', 'quiet', undefined])
      limiter.consumeSync({ account: 'a', route: 'r', ...(provider && { provider }) });
    expect(warnings).toEqual([]);
    for (const provider of ['Google', 'gogle']) limiter.consumeSync({ account: 'a', route: 'r', provider });
    expect(warnings).toMatchObject([
      { code: 'HG_PROVIDER_WITHOUT_LIMITS', message: expect.stringContaining('"Google"') },
    ]);
  });

  it('is not logged if no provider has limits', () => {
    const { limiter, codes } = watched();
    limiter.consumeSync({ account: 'a', route: 'r', provider: 'google' });
    expect(codes()).toEqual([]);
  });
});

describe('HG_PLAN_NEVER_SEEN and HG_PROVIDER_NEVER_SEEN', () => {
  const limits = { default: LIMITS, plans: { free: {}, pro: LIMITS }, providers: { google: LIMITS } };

  it('are logged once after 1,000 decisions without a plan or a provider', () => {
    const { limiter, warnings, codes } = watched({ limits });
    consume(limiter, 999);
    expect(codes()).toEqual([]);
    consume(limiter, 2_000);
    expect(codes()).toEqual(['HG_PLAN_NEVER_SEEN', 'HG_PROVIDER_NEVER_SEEN']);
    expect(warnings[0]?.message).toContain('had no plan, so limits.plans never applied');
  });

  it('HG_GROUP_NEVER_SEEN: names each group that no request had', () => {
    const { limiter, warnings } = watched({
      limits: { ...LIMITS, groups: { customer: ['9/1s'], team: ['9/1s'], key: ['9/1s'] } },
    });
    limiter.consumeSync({ account: 'a', route: 'r', groups: { key: 'k' } });
    consume(limiter, 2_000);
    expect(warnings.map(({ code, message }) => [code, /had no group "\w+"/.exec(message)?.[0]])).toEqual([
      ['HG_GROUP_NEVER_SEEN', 'had no group "customer"'],
      ['HG_GROUP_NEVER_SEEN', 'had no group "team"'],
    ]);
  });

  it('are not logged if one request had them, or if only adjustments name them', () => {
    const { limiter, codes } = watched({ limits });
    limiter.consumeSync({ account: 'a', route: 'r', plan: 'pro', provider: 'google' });
    consume(limiter, 2_000);
    const adjusted = watched();
    adjusted.limiter.adjust({ plan: 'pro' }, ['1/1m']);
    consume(adjusted.limiter, 2_000);
    expect([codes(), adjusted.codes()]).toEqual([[], []]);
  });
});

describe('HG_ACCOUNT_NEVER_SEEN', () => {
  const limits = { default: LIMITS, accounts: { 'acct-vip': LIMITS, 'acct-2': LIMITS } };

  it('is logged after 1,000 decisions for other accounts, and shows no account', () => {
    const { limiter, warnings } = watched({ limits });
    consume(limiter, 1_500);
    expect(warnings.map(({ code, message }) => [code, message])).toEqual([
      [
        'HG_ACCOUNT_NEVER_SEEN',
        'All of the first 1000 requests had no account of limits.accounts, so these never applied.',
      ],
    ]);
  });

  it('is not logged if one of them came, or if only adjustments name accounts', () => {
    const { limiter, codes } = watched({ limits });
    limiter.consumeSync({ account: 'acct-2', route: 'r' });
    consume(limiter, 1_500);
    const adjusted = watched();
    adjusted.limiter.adjust({ account: 'acct-vip' }, ['1/1m']);
    consume(adjusted.limiter, 1_500);
    expect([codes(), adjusted.codes()]).toEqual([[], []]);
  });
});

describe('HG_NOTHING_LIMITED', () => {
  const plans = { free: { allMethods: [] }, pro: LIMITS };
  const ask = (limits: LimiterOptions['limits'], plan?: string) => {
    const { limiter, codes } = watched({ limits });
    for (let i = 0; i < 1_500; i++) limiter.consumeSync({ account: 'a', route: 'r', plan });
    return codes();
  };

  it('is logged after 1,000 decisions without a window', () => {
    expect(ask({ default: LIMITS, plans }, 'free')).toEqual(['HG_NOTHING_LIMITED']);
    expect(ask({ routes: { other: ['1/1m'] } })).toEqual(['HG_NOTHING_LIMITED', 'HG_ROUTE_NEVER_SEEN']);
  });

  it('is not logged if one had a window, or if the limits or a function say that they are unlimited', () => {
    expect(ask({ default: LIMITS, plans }, 'pro')).toEqual([]);
    expect(ask({ unlimited: true })).toEqual([]);
    expect(ask(() => ({ unlimited: true }))).toEqual([]);
  });
});

describe('HG_DECISION_IGNORED', () => {
  const ask = async (max: number, look: (decision: Decision) => unknown, validate = true) => {
    const { limiter, codes } = watched({ limits: [`${max}/1m`], validate });
    for (let i = 0; i < 1_500; i++)
      look(i % 2 ? await limiter.consume({ account: 'a' }) : limiter.consumeSync({ account: 'a' }));
    return codes();
  };

  it('is logged if nothing read accepted of ten rejections among the first 1,000 requests', async () => {
    expect(await ask(980, ({ cost }) => cost)).toEqual(['HG_DECISION_IGNORED']);
  });

  it('is not logged if a rejection was read, directly or by its windows, or if there were fewer', async () => {
    expect(await ask(980, ({ accepted }) => accepted)).toEqual([]);
    expect(await ask(980, ({ shown }) => shown)).toEqual([]);
    expect(await ask(995, ({ cost }) => cost)).toEqual([]);
    expect(await ask(1, ({ cost }) => cost, false)).toEqual([]);
  });

  it('is also known of a store that returns promises, whose errors stay its own', async () => {
    const memory = createMemoryStore();
    let calls = 0;
    const store = decorateStore(memory, {
      consume:
        (consume) =>
        async (...args) => {
          if (++calls === 5) throw new Error('away');
          return consume(...args);
        },
    });
    const { limiter, codes } = watched({ limits: ['1/1m'], store: { ...store, synchronous: false } as LimitStore });
    for (let i = 0; i < 1_000; i++)
      await limiter.consume({ account: 'a' }).catch((error) => expect(error.message).toBe('away'));
    expect(codes()).toEqual(['HG_DECISION_IGNORED']);
  });

  it('S19: a rejection that is watched reads and prints as any other', () => {
    const { limiter } = watched({ limits: ['0/1m'] });
    const decision = limiter.consumeSync({ account: 'a' });
    expect(JSON.parse(JSON.stringify(decision))).toMatchObject({ accepted: false, account: 'a', route: '*' });
    expect([decision.accepted, Object.keys(decision).includes('accepted')]).toEqual([false, true]);
  });
});

describe('HG_UNDEFINED_IN_ACCOUNT', () => {
  const codesOf = (...accounts: string[]) => {
    const { limiter, codes } = watched();
    for (const account of accounts) limiter.consumeSync({ account, route: 'r' });
    return codes();
  };

  it.each(['undefined', 'user:undefined', 'acc_1 null', 'NaN', 'user:[object Object]'])(
    'is logged for %s',
    (account) => {
      expect(codesOf(account, account)).toEqual(['HG_UNDEFINED_IN_ACCOUNT']);
    },
  );

  it('is not logged for other names', () => {
    expect(codesOf('acc_1', 'nullable', 'hannah.undefinedson', 'NaNa', '')).toEqual([]);
  });
});

describe('HG_MEMORY_IN_CLUSTER', () => {
  const inWorker = (isWorker: boolean) =>
    vi.spyOn(process, 'getBuiltinModule').mockImplementation((name: string) => {
      return (name === 'node:cluster' ? { isWorker } : undefined) as never;
    });
  afterEach(() => vi.restoreAllMocks());

  it('is logged for a memory store in a worker, also for limits by address', () => {
    inWorker(true);
    expect(watched().codes()).toEqual(['HG_MEMORY_IN_CLUSTER']);
    const logged = vi.fn();
    createAddressGate({ perAddress: ['5/1m'], logger: logged }, { address: () => '192.0.2.1', fields: () => ({}) });
    expect(logged.mock.calls.map(([message]) => message)).toEqual(['headgate: HG_MEMORY_IN_CLUSTER']);
  });

  it('is not logged in another process, or for another store', () => {
    const client = { evalshaBuffer: vi.fn(), evalBuffer: vi.fn() } as never;
    inWorker(true);
    expect(watched({ store: createRedisStore(client) }).codes()).toEqual([]);
    inWorker(false);
    expect(watched().codes()).toEqual([]);
  });
});

describe('HG_SECONDS and HG_ROUTE_OF_NO_REQUEST', () => {
  const block = (limiter: ReturnType<typeof watched>['limiter'], forMs: number, route?: string) =>
    limiter.block({ account: 'a', ...(route && { route }) }, { forMs });

  it('a block of seconds is logged', async () => {
    const { limiter, codes } = watched();
    await block(limiter, 15 * 60_000);
    expect(codes()).toEqual([]);
    await block(limiter, 15 * 60);
    expect(codes()).toEqual(['HG_SECONDS']);
  });

  it('a window of seconds is logged, unless a text names its unit', () => {
    const window = { max: 5, durationMs: 900 };
    expect(watched({ limits: { default: LIMITS, plans: { pro: [window] } } }).codes()).toEqual(['HG_SECONDS']);
    expect(watched({ limits: ['5/900s', '1/300ms', { max: 9, durationMs: 3_600_000 }] }).codes()).toEqual([]);
  });

  it('a block or reset of a route is logged if requests came, and none named its route', async () => {
    for (const act of [
      (limiter: ReturnType<typeof watched>['limiter']) => block(limiter, 60_000, 'POST /login'),
      (limiter: ReturnType<typeof watched>['limiter']) => limiter.reset({ account: 'a', route: 'POST /login' }),
    ]) {
      const { limiter, codes } = watched({ limits: ['9/1m'] });
      await act(limiter);
      await limiter.block({ account: 'a' }, { forMs: 1 });
      expect(codes()).toEqual([]);
      limiter.consumeSync({ account: 'a' });
      await act(limiter);
      expect(codes()).toEqual(['HG_ROUTE_OF_NO_REQUEST']);
      const named = watched({ limits: ['9/1m'] });
      named.limiter.consumeSync({ account: 'a', route: 'POST /login' });
      await act(named.limiter);
      expect(named.codes()).toEqual([]);
    }
  });
});

it.each([false, true])(
  'a second argument, the cost in other libraries, is an error; with receipts: %s',
  async (has) => {
    const receipts = has ? createReceipts({ secret: 'x'.repeat(32) }) : undefined;
    const { limiter } = watched({ limits: ['9/1m'], receipts });
    const fault =
      /^the second argument: must be absent; the cost is a field of the first: \{ account: 'acc_1', cost: 5 \}, got 5$/;
    const { consume, consumeSync, charge } = limiter as unknown as Record<string, (...args: unknown[]) => unknown>;
    const subject = { account: 'a' };
    await expect(consume?.call(limiter, subject, 5)).rejects.toThrow(fault);
    await expect(charge?.call(limiter, subject, 5)).rejects.toThrow(fault);
    expect(() => consumeSync?.call(limiter, subject, 5)).toThrow(fault);
    expect((await limiter.consume(subject)).shown?.remaining).toBe(8);
  },
);

describe('HG_UNKNOWN_FIELD', () => {
  const subject = { account: 'a', route: 'r' };

  it('is logged once per field that is meant, by consume, peek and charge', async () => {
    const { limiter, warnings } = watched();
    for (const costs of [5, 6]) limiter.consumeSync({ ...subject, costs } as never);
    await limiter.peek({ ...subject, plann: 'pro' } as never);
    await limiter.charge({ ...subject, Cost: 50, provide: 'google' } as never);
    expect(warnings.map(({ code, message }) => [code, message])).toEqual(
      [
        ['costs', 'cost'],
        ['plann', 'plan'],
        ['provide', 'provider'],
      ].map(([given, meant]) => ['HG_UNKNOWN_FIELD', `Unknown field "${given}": is ${meant} meant?`]),
    );
  });

  it.each(['points', 'weight', 'penalty', 'tokens', 'units'])('is logged for %s, the cost elsewhere', (name) => {
    const { limiter, codes } = watched();
    limiter.consumeSync({ ...subject, cost: 1, [name]: 5 } as never);
    expect(codes()).toEqual([]);
    limiter.consumeSync({ ...subject, [name]: 5 } as never);
    expect(codes()).toEqual(['HG_UNKNOWN_FIELD']);
  });

  it('is not logged for other fields, nor if the field that they look like is given', async () => {
    const { limiter, codes } = watched();
    const job = { ...subject, id: 7, host: 'h', planName: 'pro', rate: 1, costs: [1], cost: 2 };
    limiter.consumeSync(job);
    await limiter.peek(job);
    await limiter.charge(job);
    expect(codes()).toEqual([]);
  });

  it('is looked for in the first 1,000 decisions', () => {
    const { limiter, codes } = watched();
    consume(limiter, 1_000);
    limiter.consumeSync({ ...subject, costs: 5 } as never);
    expect(codes()).toEqual([]);
  });
});

describe('HG_WINDOW_WITHOUT_EFFECT', () => {
  it.each<[LimiterOptions['limits']]>([
    [['100/1m', '10/1d']],
    [['10/1d', '10/1m']],
    [{ default: LIMITS, plans: { pro: { routes: { r: ['9/1s', '100/1m', '10/1d'] } } } }],
    [{ default: LIMITS, accounts: { vip: ['100/1m', '10/1d'] } }],
  ])('is logged for %j', (limits) => {
    const { warnings } = watched({ limits });
    expect(warnings).toMatchObject([
      { code: 'HG_WINDOW_WITHOUT_EFFECT', message: expect.stringMatching(/^1\d*\/1m has .* 10\/1d\.$/) },
    ]);
  });

  it('is not logged for windows of different limits, or in order', () => {
    const limits = { allMethods: ['100/1m', '1000/1d'], routes: { r: ['200/1s', '500/1h'] } };
    expect(watched({ limits }).codes()).toEqual([]);
    expect(watched({ limits: () => ['100/1m', '10/1d'] }).codes()).toEqual([]);
  });
});

describe('HG_RECEIPTS_IN_MEMORY', () => {
  const receipts = createReceipts({ secret: 'x'.repeat(32) });

  it('is logged for a memory store, also by default', () => {
    expect(watched({ receipts }).codes()).toEqual(['HG_RECEIPTS_IN_MEMORY']);
    const logged = vi.fn();
    createLimiter({ limits: ['1/1m'], receipts, logger: logged });
    expect(logged.mock.calls.map(([message]) => message)).toEqual(['headgate: HG_RECEIPTS_IN_MEMORY']);
  });

  it('is not logged for Redis, or without receipts', () => {
    const client = { evalshaBuffer: vi.fn(), evalBuffer: vi.fn() } as never;
    expect([watched({ receipts, store: createRedisStore(client) }).codes(), watched().codes()]).toEqual([[], []]);
  });
});

it('validate: false turns every check off', () => {
  const limits = { default: { ...LIMITS, routes: { x: ['1/1m'] } }, providers: { google: LIMITS } };
  const { limiter, codes } = watched({ limits, validate: false });
  for (let i = 0; i < 3_000; i++) limiter.consumeSync({ account: 'a', route: `r${i}`, provider: 'gogle' });
  expect(codes()).toEqual([]);
});

it('warnings are written to the console by default, and not with logger: false', () => {
  const written = vi.spyOn(console, 'error').mockImplementation(() => {});
  const store = createMemoryStore();
  watched({ store });
  watched({ store, limits: { allMethods: ['1/1m'] }, logger: false });
  expect(written).not.toHaveBeenCalled();
  watched({ store, limits: { allMethods: ['2/1m'] }, logger: undefined });
  expect(written.mock.calls.map(String)).toEqual([
    expect.stringMatching(/^%s,headgate: HG_SHARED_PREFIX: MisuseWarning: Two limiters .* prefix\.$/),
  ]);
  written.mockRestore();
});
