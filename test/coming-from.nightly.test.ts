/** The pages for users of other libraries: both programs of each pair get the same requests, and decide alike. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { namesOf, rowsOf } from 'headgate-testbed/docs';
import { type RedisRest, startRedisRest } from 'headgate-testbed/redis-rest';
import { type InnerList, type Item, type List, parseList } from 'structured-headers';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { compileSamples } from './support/compile-samples.ts';
import { ROOT } from './support/package.ts';

/** Inside the package of the benchmarks' peers, so that programs find the peers there, and everything else further up. */
const PEERS = join(ROOT, 'packages/bench/versus');
const FOLDER = join(PEERS, '.examples');

interface Pair {
  /** Page and heading, as in `ASKED`. */
  readonly name: string;
  readonly before: string;
  readonly after: string;
}

const PAGES = readdirSync(join(ROOT, 'docs/from')).filter((file) => file !== 'README.md');
const PAIRS: readonly Pair[] = PAGES.flatMap((page) =>
  readFileSync(join(ROOT, 'docs/from', page), 'utf8')
    .split(/^## /m)
    .flatMap((section) => {
      // A program that needs another library is `typescript`, so that examples.test.ts does not run it.
      const [before, after] = [...section.matchAll(/^```(?:typescript|ts)\n(.*?)^```/gms)].map(([, code]) => code);
      if (before === undefined || after === undefined) return [];
      return [{ name: `${page.replace('.md', '')}: ${section.split('\n', 1)[0]}`, before, after }];
    }),
);

interface Request {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
}

interface Asked {
  /** Each request, and the status of both programs; or of theirs and of ours, if the page says that they differ. */
  readonly requests: readonly (readonly [request: Request, status: number, ofOurs?: number])[];
  /** What the page says about the fields of two answers to the same request. */
  compare(theirs: Answer, ours: Answer, request: Request): void;
}

const times = (count: number, request: Request, status: number): [Request, number][] =>
  Array.from({ length: count }, () => [request, status]);
const by = (user: string, request: Request = {}): Request => ({ ...request, headers: { 'x-user': user } });
const login = (name: string, password: string): Request => ({
  method: 'POST',
  path: '/login',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ name, password }),
});

/** The same text, or no such field in both. */
const sameFields = (theirs: Answer, ours: Answer, names: readonly string[]): void => {
  const of = ({ headers }: Answer) => Object.fromEntries(names.map((name) => [name, headers.get(name)]));
  expect(of(ours)).toEqual(of(theirs));
};
/** Seconds that are left: the two programs are not asked at the same moment. */
const isSecondsLeft = (text: string | null | undefined, windowSeconds: number): void => {
  expect(text).toMatch(/^\d+$/);
  expect(Number(text)).toBeGreaterThan(0);
  expect(Number(text)).toBeLessThanOrEqual(windowSeconds);
};
const waitOfBoth = (theirs: Answer, ours: Answer, windowSeconds: number): void => {
  expect([theirs, ours].map(({ headers }) => headers.has('retry-after'))).toEqual(Array(2).fill(theirs.status === 429));
  if (theirs.status !== 429) return;
  for (const { headers } of [theirs, ours]) isSecondsLeft(headers.get('retry-after'), windowSeconds);
};
/** Names and parameters of a structured field. */
const parametersOf = ({ headers }: Answer, field: string): [string, Record<string, unknown>][] =>
  (parseList(headers.get(field) ?? '') as List).map((member: Item | InnerList) => [
    String(member[0]),
    Object.fromEntries(member[1]),
  ]);
const COUNTS = ['x-ratelimit-limit', 'x-ratelimit-remaining'];

const ASKED: Record<string, Asked> = {
  'express-rate-limit: One limit for each address': {
    requests: [...times(60, {}, 200), ...times(40, { path: '/other' }, 200), ...times(2, {}, 429)],
    compare(theirs, ours) {
      sameFields(theirs, ours, COUNTS);
      waitOfBoth(theirs, ours, 900);
      isSecondsLeft(ours.headers.get('x-ratelimit-reset'), 900);
      expect(Number(theirs.headers.get('x-ratelimit-reset'))).toBeGreaterThan(1_700_000_000);
      if (theirs.status !== 429) return;
      expect(theirs.headers.get('content-type')).toMatch(/^text\/html/);
      expect(ours.headers.get('content-type')).toBe('application/json');
    },
  },
  'express-rate-limit: One limit for each user': {
    requests: [
      ...times(6, by('ann'), 200),
      ...times(4, by('ann', { path: '/other' }), 200),
      ...times(2, by('ann'), 429),
      ...times(3, by('ann', { path: '/health' }), 200),
      ...times(10, {}, 200),
      ...times(1, {}, 429),
      ...times(1, by('bob'), 200),
    ],
    compare(theirs, ours, { path }) {
      waitOfBoth(theirs, ours, 60);
      sameFields(theirs, ours, COUNTS);
      if (path === '/health') return sameFields(theirs, ours, ['ratelimit', 'ratelimit-policy']);
      const [[theirName, left] = [], ...others] = parametersOf(theirs, 'ratelimit');
      const [[ourName, ourLeft] = []] = parametersOf(ours, 'ratelimit');
      expect([others, theirName, ourName]).toEqual([[], '10-in-1min', 'all-methods-1m']);
      expect(ourLeft?.r).toBe(left?.r);
      for (const each of [left, ourLeft]) isSecondsLeft(String(each?.t), 60);
      const [[, { pk, ...policy } = {}] = []] = parametersOf(theirs, 'ratelimit-policy');
      expect(pk).toBeDefined();
      expect(parametersOf(ours, 'ratelimit-policy')).toEqual([['all-methods-1m', policy]]);
    },
  },
  'rate-limiter-flexible: Consume points in your own code': {
    requests: [
      [{}, 401],
      ...times(3, by('ann', { method: 'POST' }), 200),
      ...times(1, by('ann'), 200),
      ...times(2, by('ann'), 429),
      ...times(3, by('bob', { method: 'POST' }), 200),
      [by('bob', { method: 'POST' }), 429],
      // What the page says about rejected points.
      [by('bob'), 429, 200],
    ],
    compare(theirs, ours) {
      if (theirs.status !== ours.status) return;
      if (theirs.status === 200) sameFields(theirs, ours, ['x-ratelimit-remaining']);
      waitOfBoth(theirs, ours, 60);
    },
  },
  'rate-limiter-flexible: A login: five failures in 15 minutes': {
    requests: [
      ...times(2, login('ann', 'wrong'), 401),
      ...times(4, login('ann', 'right'), 200),
      ...times(3, login('ann', 'wrong'), 401),
      ...times(1, login('ann', 'wrong'), 429),
      ...times(1, login('ann', 'right'), 429),
      ...times(1, login('bob', 'right'), 200),
    ],
    compare: (theirs, ours) => waitOfBoth(theirs, ours, 900),
  },
  'fastify-rate-limit: One limit for each address': {
    requests: [
      ...times(60, {}, 200),
      ...times(40, { path: '/other' }, 200),
      ...times(2, {}, 429),
      ...times(1, { path: '/health' }, 200),
      ...times(1, { path: '/nowhere' }, 404),
    ],
    compare(theirs, ours, { path }) {
      sameFields(theirs, ours, COUNTS);
      waitOfBoth(theirs, ours, 60);
      const isCounted = path === undefined || path === '/other';
      for (const { headers } of [theirs, ours]) {
        if (isCounted) isSecondsLeft(headers.get('x-ratelimit-reset'), 60);
        else expect(headers.has('x-ratelimit-reset')).toBe(false);
      }
      if (theirs.status !== 429) return;
      for (const { headers } of [theirs, ours]) expect(headers.get('content-type')).toMatch(/^application\/json/);
    },
  },
  'fastify-rate-limit: One limit for each user, and a smaller one for a route': {
    requests: [
      ...times(3, by('ann', { method: 'POST', path: '/emails' }), 200),
      ...times(1, by('ann', { method: 'POST', path: '/emails' }), 429),
      ...times(6, by('bob'), 200),
      ...times(4, by('bob', { path: '/other' }), 200),
      ...times(1, by('bob'), 429),
      ...times(10, {}, 200),
      ...times(1, {}, 429),
      // What the page says about both limits: ann has sent three emails.
      ...times(1, by('ann', { path: '/other' }), 200),
    ],
    compare(theirs, ours, { path, headers }) {
      waitOfBoth(theirs, ours, 60);
      const [theirLimit, ourLimit] = [theirs, ours].map((each) => each.headers.get('x-ratelimit-limit'));
      const [theirRest, ourRest] = [theirs, ours].map((each) => each.headers.get('x-ratelimit-remaining'));
      if (path === '/emails' && theirs.status === 200) expect([theirLimit, ourLimit]).toEqual(['3', '10']);
      else expect(ourLimit).toBe(theirLimit);
      if (path === '/emails') return;
      if (headers?.['x-user'] === 'ann') expect([theirRest, ourRest]).toEqual(['9', '6']);
      else expect(ourRest).toBe(theirRest);
    },
  },
  'nestjs-throttler: The guard of the whole application': {
    requests: [
      ...times(10, {}, 200),
      ...times(2, {}, 429),
      ...times(1, { path: '/other' }, 200),
      ...times(3, { method: 'POST', path: '/emails' }, 201),
      ...times(1, { method: 'POST', path: '/emails' }, 429),
      ...times(1, { path: '/health' }, 200),
    ],
    compare(theirs, ours, { path }) {
      waitOfBoth(theirs, ours, 60);
      if (theirs.status === 429) {
        expect([theirs, ours].map(({ headers }) => headers.has('x-ratelimit-limit'))).toEqual([false, true]);
        return;
      }
      if (path === '/emails') {
        expect([theirs, ours].map(({ headers }) => headers.get('x-ratelimit-limit'))).toEqual(['3', '10']);
        return;
      }
      sameFields(theirs, ours, COUNTS);
      if (path === '/health') return;
      for (const { headers } of [theirs, ours]) isSecondsLeft(headers.get('x-ratelimit-reset'), 60);
    },
  },
  'upstash-ratelimit: A fixed window for each user': {
    requests: [[{}, 401], ...times(10, by('ann'), 200), ...times(2, by('ann'), 429), ...times(1, by('bob'), 200)],
    compare(theirs, ours) {
      sameFields(theirs, ours, COUNTS);
      if (ours.status === 401) return;
      isSecondsLeft(ours.headers.get('x-ratelimit-reset'), 3_600);
      expect(ours.headers.has('retry-after')).toBe(ours.status === 429);
    },
  },
  'hono-rate-limiter: One limit for each user': {
    requests: [
      ...times(6, by('ann'), 200),
      ...times(4, by('ann', { path: '/other' }), 200),
      ...times(2, by('ann'), 429),
      ...times(1, by('ann', { path: '/health' }), 200),
      ...times(10, {}, 200),
      ...times(1, {}, 429),
    ],
    compare(theirs, ours, { path }) {
      waitOfBoth(theirs, ours, 900);
      for (const name of ['limit', 'remaining'])
        expect(ours.headers.get(`x-ratelimit-${name}`)).toBe(theirs.headers.get(`ratelimit-${name}`));
      if (path === '/health') return;
      isSecondsLeft(theirs.headers.get('ratelimit-reset'), 900);
      isSecondsLeft(ours.headers.get('x-ratelimit-reset'), 900);
      expect(theirs.headers.get('ratelimit-policy')).toBe('10;w=900');
    },
  },
};

let rest: RedisRest;
let faults: string;
/** Programs that run now. */
const running = new Set<ChildProcess>();

const programOf = (name: string, side: 'before' | 'after'): string => `${name.replace(/\W+/g, '-')}-${side}`;

beforeAll(async () => {
  // Fails if the peers cannot be installed: without them, the pages are not tested.
  const { installPeers } = await import(new URL('../packages/bench/src/peers.mjs', import.meta.url).href);
  installPeers();
  rest = await startRedisRest(inject('redis').port);
  const samples = PAIRS.flatMap(({ name, before, after }) => [
    { name: programOf(name, 'before'), code: before },
    { name: programOf(name, 'after'), code: after },
  ]);
  const [, overHttp = ''] = /^```typescript\n(.*?)^```/ms.exec(readFileSync(join(ROOT, 'docs/redis.md'), 'utf8')) ?? [];
  samples.push({ name: 'redis-over-http', code: overHttp });
  // The port is the reader's. Each program gets a free one, and prints it.
  const free = samples.map(({ name, code }) => ({ name, code: code.replace(/(listen\((?:\{ port: )?)\d+/, '$10') }));
  faults = await compileSamples(FOLDER, free);
});

afterAll(async () => {
  for (const program of running) program.kill('SIGKILL');
  await rest?.close();
  rmSync(FOLDER, { recursive: true, force: true });
});

const environment = () => ({
  ...process.env,
  REDIS_PORT: String(inject('redis').port),
  UPSTASH_REDIS_REST_URL: rest.url,
  UPSTASH_REDIS_REST_TOKEN: rest.token,
  UPSTASH_DISABLE_TELEMETRY: '1',
});

/** Prints the port of each server that the program starts. */
const SHOW_PORT = `data:text/javascript,${encodeURIComponent(`
  import { Server } from 'node:net';
  const { listen } = Server.prototype;
  Server.prototype.listen = function (...args) {
    this.once('listening', () => console.log('port ' + this.address().port));
    return listen.apply(this, args);
  };
`)}`;

async function answersOf(program: string, requests: Asked['requests']): Promise<Answer[]> {
  const child = spawn(process.execPath, ['--import', SHOW_PORT, `${program}.mjs`], {
    cwd: FOLDER,
    env: environment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (printed += text));
  try {
    const port = await expect
      .poll(
        () => {
          if (child.exitCode !== null) throw new Error(`${program} ended: ${printed}`);
          return /^port (\d+)$/m.exec(printed)?.[1];
        },
        { timeout: 60_000 },
      )
      .toBeDefined()
      .then(() => /^port (\d+)$/m.exec(printed)?.[1]);
    const answers: Answer[] = [];
    for (const [{ path = '/', ...request }] of requests) {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, request);
      await response.arrayBuffer();
      answers.push({ status: response.status, headers: response.headers });
    }
    return answers;
  } finally {
    child.kill('SIGKILL');
    running.delete(child);
  }
}

describe('pages for users of other libraries', () => {
  it('compile, before and after', () => expect(faults).toBe(''));

  it('have requests for every pair that serves', () => {
    const serving = PAIRS.filter(({ before }) => before.includes('.listen('));
    expect(Object.keys(ASKED).sort()).toEqual(serving.map(({ name }) => name).sort());
    expect(new Set(PAIRS.map(({ name }) => name.split(':')[0])).size).toBe(PAGES.length);
  });

  it.each(Object.entries(ASKED))('%s', async (name, { requests, compare }) => {
    const [theirs, ours] = await Promise.all(
      (['before', 'after'] as const).map((side) => answersOf(programOf(name, side), requests)),
    );
    expect(theirs?.map(({ status }) => status)).toEqual(requests.map(([, status]) => status));
    expect(ours?.map(({ status }) => status)).toEqual(requests.map(([, status, ofOurs]) => ofOurs ?? status));
    for (const [i, [request]] of requests.entries()) compare(theirs?.[i] as Answer, ours?.[i] as Answer, request);
  });

  it.each(PAIRS.filter(({ name }) => !(name in ASKED)))('$name: prints the same', async ({ name }) => {
    const [theirs, ours] = await Promise.all(
      (['before', 'after'] as const).map((side) =>
        promisify(execFile)(process.execPath, [`${programOf(name, side)}.mjs`], {
          cwd: FOLDER,
          env: environment(),
          timeout: 60_000,
        }),
      ),
    );
    expect(ours?.stdout).toBe(theirs?.stdout);
    expect(ours?.stdout).toMatch(/^(job .*\n){4}$/);
  });

  it.each(PAGES)('%s: the first column of the options are names of the library', (page) => {
    const [library = ''] = /(?<=^# Coming from ).*/.exec(readFileSync(join(ROOT, 'docs/from', page), 'utf8')) ?? [];
    const names = namesOf(rowsOf(`docs/from/${page}`, library)).flatMap((name) => name.match(/[a-z]\w+/gi) ?? []);
    expect(names.length).toBeGreaterThan(5);
    const folder = join(PEERS, 'node_modules', library);
    const texts = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.d\.[cm]?ts$/.test(file))
      .map((file) => readFileSync(join(folder, file), 'utf8'));
    const words = new Set(texts.flatMap((text) => text.match(/\w+/g) ?? []));
    expect(names.filter((name) => !words.has(name))).toEqual([]);
  });
});
