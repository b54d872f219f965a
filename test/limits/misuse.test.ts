import { describe, expect, it, vi } from 'vitest';
import { MisuseLog, type MisuseWarning } from '../../src/core/misuse.ts';
import type { LimitStore } from '../../src/core/ports.ts';
import { LatestLimiters } from '../../src/limits/latest-limiters.ts';
import { createLimiter } from '../../src/limits/limiter.ts';
import { LimiterChecks } from '../../src/limits/limiter-checks.ts';
import type { LimiterOptions } from '../../src/limits/ports.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
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

// docs/misuse.md has an example with limiters, in a process of its own.
describe('HG_LIMITER_PER_REQUEST', () => {
  /** The limiters of a process. */
  function newProcess() {
    const latest = new LatestLimiters();
    const codes: string[] = [];
    const misuse = () => new MisuseLog((_, warning) => void codes.push((warning as MisuseWarning).code));
    const newLimiter = () => new LimiterChecks(misuse(), [], latest);
    return { newLimiter, codes };
  }

  it('is logged once, when ten limiters in a row each began with the same account and route', () => {
    const { newLimiter, codes } = newProcess();
    for (let i = 0; i < 9; i++) newLimiter().decides('a', 'r');
    expect(codes).toEqual([]);
    for (let i = 0; i < 30; i++) newLimiter().decides('a', 'r');
    expect(codes).toEqual(['HG_LIMITER_PER_REQUEST']);
  });

  it('is also logged if another limiter is used in between, as for addresses', () => {
    const { newLimiter, codes } = newProcess();
    const perAddress = newLimiter();
    for (let i = 0; i < 11; i++) {
      perAddress.decides('192.0.2.1', 'any');
      newLimiter().decides('a', 'r');
    }
    expect(codes).toEqual(['HG_LIMITER_PER_REQUEST']);
  });

  it('is not logged if all were created before the first request, such as one per route', () => {
    const { newLimiter, codes } = newProcess();
    const limiters = Array.from({ length: 30 }, newLimiter);
    for (const limiter of limiters) limiter.decides('192.0.2.1', '*');
    expect(codes).toEqual([]);
  });

  it('is logged if two requests at a time create their limiters', () => {
    const { newLimiter, codes } = newProcess();
    for (let i = 0; i < 20; i++) for (const limiter of [newLimiter(), newLimiter()]) limiter.decides('a', 'r');
    expect(codes).toEqual(['HG_LIMITER_PER_REQUEST']);
  });

  it('is not logged for limiters of different accounts or routes, or that decide again', () => {
    const { newLimiter, codes } = newProcess();
    for (let i = 0; i < 30; i++) newLimiter().decides(`tenant_${i}`, 'r');
    for (let i = 0; i < 30; i++) newLimiter().decides('a', `r${i}`);
    for (let i = 0; i < 30; i++) {
      const limiter = newLimiter();
      for (let n = 0; n < 3; n++) limiter.decides('a', 'r');
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
    consume(limiter, 999, 'POST /mails');
    expect(warnings).toEqual([]);
    consume(limiter, 500, 'POST /mails');
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
    consume(limiter, 1, 'GET /chats');
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
