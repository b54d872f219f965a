/**
 * What SvelteKit, Next.js, Remix and React Router throw and return in place of a response. Their packages are not
 * installed: the values below have the shapes of SvelteKit 2, Next.js 14 to 16, and React Router 7.
 */
import { describe, expect, it } from 'vitest';
import {
  type FetchSubject,
  fieldOfBody,
  idempotentRequest,
  passageOf,
  servedFromCache,
  withHeadgate,
} from '../../../src/adapters/fetch.ts';
import { createGate, createIdempotency, createLimiter } from '../../../src/index.ts';
import { createMemoryClaimStore } from '../../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../../src/stores/memory/limits.ts';
import { keyedWeb, postOf } from '../../support/keyed-web.ts';

/** `error(422, …)` of SvelteKit throws it: it is not an Error. */
class HttpError {
  constructor(
    readonly status: number,
    readonly body: object,
  ) {}
}
/** `redirect()` of SvelteKit throws it. */
class Redirect {
  constructor(
    readonly status: number,
    readonly location: string,
  ) {}
}
/** `fail()` of SvelteKit returns it. */
class ActionFailure {
  constructor(
    readonly status: number,
    readonly data: unknown,
  ) {}
}
/** `data()` of React Router returns it, and recognises it by its properties. */
class DataWithResponseInit {
  readonly type = 'DataWithResponseInit';
  constructor(
    readonly data: unknown,
    readonly init: ResponseInit | undefined,
  ) {}
}
const ofNext = (digest: string) => Object.assign(new Error(digest), { digest });

type Result = { readonly returned: unknown } | { readonly thrown: unknown };

/** An action behind a gate; each call sends the same key. `what` is the request, or an event with a request. */
function action(run: () => unknown, what: 'request' | 'event' = 'event') {
  let runs = 0;
  const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['1000/1m'] } });
  const gate = createGate<FetchSubject>({
    limiter,
    account: () => 'a',
    route: () => 'r',
    idempotency: createIdempotency({ store: createMemoryClaimStore() }),
    idempotent: (subject) => idempotentRequest('request' in subject ? subject.request : subject, { scope: 'app_1' }),
    logger: false,
  });
  const handler = withHeadgate<FetchSubject, [], unknown>(gate, () => {
    runs++;
    return run();
  });
  const call = (): Promise<Result> =>
    handler(what === 'event' ? { request: postOf() } : postOf()).then(
      (returned) => ({ returned }),
      (thrown: unknown) => ({ thrown }),
    );
  return { call, runs: () => runs };
}

const rethrow = (thrown: unknown) => () => {
  throw thrown;
};
const responseOf = (result: Result): Response => {
  if (!('returned' in result && result.returned instanceof Response)) throw new Error('not a response');
  return result.returned;
};

it('the helpers take what the handler takes: an event with the request in it', async () => {
  // RequestEvent of SvelteKit, and LoaderFunctionArgs of React Router, as far as they matter here.
  type Event = { readonly request: Request; readonly params: Record<string, string> };
  const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['10/1m'] } });
  const gate = createGate<Event>({
    limiter,
    account: (event) => fieldOfBody(event, 'a'),
    route: () => 'r',
    idempotency: createIdempotency({ store: createMemoryClaimStore() }),
    idempotent: (event) => idempotentRequest(event, { scope: 'app_1' }),
  });
  const decided: unknown[] = [];
  const handler = withHeadgate(gate, (event: Event) => {
    decided.push(passageOf(event)?.decision?.account);
    servedFromCache(event);
    return new Response('ok');
  });
  const answers = [];
  for (const _ of [1, 2]) answers.push(await handler({ request: postOf({ body: '{"a":"acc_1"}' }), params: {} }));
  expect(answers.map(({ headers }) => headers.get('idempotency-replayed'))).toEqual([null, 'true']);
  expect([decided, (await limiter.peek({ account: 'acc_1', route: 'r' }))[0]?.remaining]).toEqual([['acc_1'], 10]);
});

describe('I6: data() of React Router', () => {
  it('is thrown again with its status and fields, if a handler threw it', async () => {
    const given = new DataWithResponseInit({ to: 'missing' }, { status: 422, headers: { 'x-own': 'a' } });
    const { call, runs } = action(rethrow(given));
    expect(await call()).toEqual({ thrown: given });
    const init = { status: 422, headers: [['x-own', 'a']] };
    expect(await call()).toEqual({ thrown: { type: 'DataWithResponseInit', data: { to: 'missing' }, init } });
    expect(runs()).toBe(1);
  });

  it('has its own status in the refusal, if JSON cannot express it', async () => {
    const { call } = action(rethrow(new DataWithResponseInit(new Date(), { status: 422 })));
    await call();
    expect(await responseOf(await call()).json()).toMatchObject({ detail: expect.stringContaining('status 422') });
  });
});

describe('I6: a thrown value that carries a status is stored as the response that the framework makes of it', () => {
  it.each<[string, unknown, number, string | null, string]>([
    ['error() of SvelteKit', new HttpError(422, { message: 'no' }), 422, null, '{"message":"no"}'],
    ['redirect() of SvelteKit', new Redirect(303, '/done'), 303, '/done', ''],
    ['notFound() of Next.js', ofNext('NEXT_HTTP_ERROR_FALLBACK;404'), 404, null, ''],
    ['notFound() of Next.js 14', ofNext('NEXT_NOT_FOUND'), 404, null, ''],
    ['forbidden() of Next.js', ofNext('NEXT_HTTP_ERROR_FALLBACK;403'), 403, null, ''],
    ['redirect() of Next.js', ofNext('NEXT_REDIRECT;replace;/a;b=1?c=2;307;'), 307, '/a;b=1?c=2', ''],
  ])('%s', async (_, thrown, status, location, text) => {
    for (const what of ['request', 'event'] as const) {
      const { call, runs } = action(rethrow(thrown), what);
      expect(await call()).toEqual({ thrown });
      const retry = responseOf(await call());
      expect([retry.status, retry.headers.get('location'), await retry.text()]).toEqual([status, location, text]);
      expect([retry.headers.get('idempotency-replayed'), runs()]).toEqual(['true', 1]);
    }
  });

  it.each<[string, unknown, number]>([
    ['an error with a status', Object.assign(new Error('no'), { status: 422 }), 422],
    ['an error with a statusCode', Object.assign(new Error('no'), { statusCode: 403 }), 403],
    ['an error with another status', Object.assign(new Error('no'), { status: 'bad', code: 404 }), 500],
    ['an error', new Error('no'), 500],
    ['a value without properties', Object.create(null), 500],
  ])('%s: only the status is known, and the retry says so', async (_, thrown, status) => {
    const { call, runs } = action(rethrow(thrown));
    expect(await call()).toEqual({ thrown });
    const retry = responseOf(await call());
    expect([retry.status, runs()]).toEqual([409, 1]);
    expect(await retry.text()).toMatch(`completed with status ${status}, but its response was not stored`);
  });

  it('a 429 that is thrown releases the key', async () => {
    const { call, runs } = action(rethrow(new HttpError(429, { message: 'slow' })));
    await call();
    await call();
    expect(runs()).toBe(2);
  });

  it('I4: a Response that is thrown is thrown again, byte for byte', async () => {
    const { call, runs } = action(() => {
      throw new Response('moved', { status: 302, headers: { location: '/done', 'headgate-result': 'data' } });
    });
    for (const replayed of [null, 'true']) {
      const result = await call();
      const thrown = ('thrown' in result ? result.thrown : undefined) as Response;
      expect([thrown.status, await thrown.text(), thrown.headers.get('location')]).toEqual([302, 'moved', '/done']);
      expect([thrown.headers.get('idempotency-replayed'), thrown.headers.get('headgate-result')]).toEqual([
        replayed,
        null,
      ]);
      if (replayed === null) expect(thrown.headers.get('x-ratelimit-remaining')).toBe('999');
    }
    expect(runs()).toBe(1);
  });
});

describe('I6: redirect() of Next.js is stored with the status that Next.js gives it', () => {
  const FORM = 'application/x-www-form-urlencoded';
  const BODY = '--x\r\ncontent-disposition: form-data; name="to"\r\n\r\nann\r\n--x--\r\n';
  it.each<[string, string, Record<string, string>, number]>([
    ['a form', 'POST', { 'content-type': FORM }, 303],
    ['a multipart form', 'POST', { 'content-type': 'multipart/form-data; boundary=x' }, 303],
    ['a server action', 'POST', { 'next-action': 'abc' }, 303],
    ['a form with a charset, which Next.js does not compare', 'POST', { 'content-type': `${FORM};charset=UTF-8` }, 307],
    ['JSON', 'POST', {}, 307],
    ['a form that is not sent by POST', 'PUT', { 'content-type': FORM }, 307],
  ])('%s', async (_, method, headers, status) => {
    const keyed = keyedWeb(rethrow(ofNext('NEXT_REDIRECT;replace;/done;307;')) as () => never);
    const send = () => keyed.fetch(postOf({ method, headers, body: BODY }));
    await expect(send()).rejects.toThrow('NEXT_REDIRECT');
    const retry = (await send()) as Response;
    expect([retry.status, retry.headers.get('location'), keyed.runs]).toEqual([status, '/done', 1]);
  });
});

describe('a response of a middleware of Next.js that lets the request pass', () => {
  const PASSING: [string, Record<string, string>][] = [
    ['NextResponse.next()', { 'x-middleware-next': '1' }],
    ['NextResponse.rewrite()', { 'x-middleware-rewrite': 'http://x/other' }],
  ];

  it.each(PASSING)('I6: %s is no outcome of a key: 500, the log says why, and the key is free', async (_, headers) => {
    const logged: unknown[][] = [];
    const keyed = keyedWeb(() => new Response(null, { headers }), {
      gate: { logger: (...line) => void logged.push(line) },
    });
    for (const runs of [1, 2]) {
      const response = await keyed.post();
      expect([response.status, response.headers.get('idempotency-replayed'), keyed.runs]).toEqual([500, null, runs]);
      expect(response.headers.has('x-middleware-next') || response.headers.has('x-middleware-rewrite')).toBe(false);
      expect(await response.json()).toMatchObject({ type: 'errors/unexpected_error' });
    }
    expect(await keyed.remaining()).toBe(1000);
    expect(logged.map(([message]) => message)).toEqual(
      [1, 2].map(() => expect.stringMatching(/^headgate: idempotency/)),
    );
    expect(logged[0]?.[1]).toMatchObject({
      name: 'OptionError',
      message: expect.stringMatching(
        /use a gate without idempotency in proxy.ts\/middleware, and one with keys in the route/,
      ),
    });
    expect(keyed.events.filter(({ type }) => type === 'failure')).toHaveLength(2);
  });

  it('a gate in front takes it for an answer of the gate, and stores nothing either', async () => {
    const inner = keyedWeb(() => new Response(null, { headers: { 'x-middleware-next': '1' } }));
    const finalCosts: number[] = [];
    const outer = createGate<Request>({
      limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['10/1m'] } }),
      account: () => 'a',
      route: () => 'r',
      finalCost: ({ status }) => void finalCosts.push(status) as undefined,
    });
    const handler = withHeadgate(outer, (request: Request) => inner.fetch(request) as Promise<Response>);
    expect([(await handler(postOf())).status, finalCosts]).toEqual([500, []]);
  });

  it.each(PASSING)('%s passes if the request has no key', async (_, headers) => {
    const keyed = keyedWeb(() => new Response(null, { headers }));
    const response = (await keyed.fetch(new Request('http://x/', { method: 'POST' }))) as Response;
    expect([response.status, [...new Headers(headers).keys()].every((name) => response.headers.has(name))]).toEqual([
      200,
      true,
    ]);
  });
});

describe('S13: finalCost sees the status that a result stands for', () => {
  it.each<[string, 'request' | 'event', () => unknown, number]>([
    ['data of an action', 'event', () => ({ ok: true }), 200],
    ['nothing, from an action', 'event', () => undefined, 200],
    ['fail() of SvelteKit', 'event', () => new ActionFailure(400, {}), 400],
    ['data() of React Router', 'event', () => new DataWithResponseInit({}, { status: 422 }), 422],
    [
      'data that cannot be read',
      'event',
      () => ({
        get type() {
          throw new Error('no');
        },
      }),
      200,
    ],
    ['nothing, as after an upgrade', 'request', () => undefined, 101],
    ['a response with status 0, as after an upgrade', 'request', () => Response.error(), 101],
    ['error() of SvelteKit', 'event', () => Promise.reject(new HttpError(404, {})), 404],
    ['redirect() of SvelteKit', 'event', () => Promise.reject(new Redirect(303, '/')), 303],
    ['notFound() of Next.js', 'request', () => Promise.reject(ofNext('NEXT_HTTP_ERROR_FALLBACK;404')), 404],
    ['any other error', 'request', () => Promise.reject(new Error('boom')), 500],
  ])('%s, with and without a key', async (_, what, run, status) => {
    const seen: number[] = [];
    const gate = createGate<FetchSubject>({
      limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['10/1m'] } }),
      account: () => 'a',
      route: () => 'r',
      finalCost: (response) => void seen.push(response.status) as undefined,
      idempotency: createIdempotency({ store: createMemoryClaimStore() }),
      idempotent: (subject) => idempotentRequest('request' in subject ? subject.request : subject, { scope: 'app_1' }),
    });
    const handler = withHeadgate<FetchSubject, [], unknown>(gate, run);
    for (const request of [new Request('http://x/', { method: 'POST' }), postOf()])
      await Promise.allSettled([handler(what === 'event' ? { request } : request)]);
    expect(seen).toEqual([status, status]);
  });
});

describe('I4: data of an action is stored and replayed as data', () => {
  it.each<[string, unknown]>([
    ['an object', { ok: true, list: [1, 'ä', null], nested: { status: 422 } }],
    ['a list', [1, 2]],
    ['text', 'sent'],
    ['null', null],
    ['nothing', undefined],
    ['an object with a status', { status: 'queued' }],
  ])('%s', async (_, data) => {
    const { call, runs } = action(() => data);
    expect(await call()).toEqual({ returned: data });
    expect(await call()).toEqual({ returned: data });
    expect(runs()).toBe(1);
  });

  it('data() of React Router keeps its status and its fields', async () => {
    const given = new DataWithResponseInit({ errors: ['to'] }, { status: 422, headers: { 'x-own': '1' } });
    const { call, runs } = action(() => given);
    expect(await call()).toEqual({ returned: given });
    expect(await call()).toEqual({
      returned: {
        type: 'DataWithResponseInit',
        data: { errors: ['to'] },
        init: { status: 422, headers: [['x-own', '1']] },
      },
    });
    expect(runs()).toBe(1);
  });

  it.each<[string, () => unknown, number]>([
    ['a function in it', () => ({ run: () => 1 }), 200],
    ['a date', () => ({ at: new Date(0) }), 200],
    ['a number that JSON does not have', () => [Number.NaN], 200],
    [
      'itself in it',
      () => {
        const data: Record<string, unknown> = {};
        data.self = data;
        return data;
      },
      200,
    ],
    ['fail() of SvelteKit', () => new ActionFailure(400, { to: 'missing' }), 400],
  ])('I7: data with %s cannot be stored, and the retry says so, with its status', async (_, make, status) => {
    const { call, runs } = action(make);
    expect(Object.keys(await call())).toEqual(['returned']);
    const retry = responseOf(await call());
    expect([retry.status, runs()]).toEqual([409, 1]);
    expect(await retry.text()).toMatch(`completed with status ${status}, but its response was not stored`);
  });

  it('a handler cannot make its response look like data', async () => {
    const { call } = action(() => new Response('[1]', { headers: { 'headgate-result': 'data' } }));
    for (const _ of [1, 2]) expect(await responseOf(await call()).text()).toBe('[1]');
  });
});
