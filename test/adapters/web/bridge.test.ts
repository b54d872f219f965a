import { pause } from 'headgate-testbed/raw-http';
import { describe, expect, it } from 'vitest';
import { headgate, passageOf, servedFromCache, withHeadgate } from '../../../src/adapters/fetch.ts';
import { createGate, createLimiter, type GateOptions } from '../../../src/index.ts';
import { createMemoryStore } from '../../../src/stores/memory/limits.ts';
import { keyedWeb, postOf } from '../../support/keyed-web.ts';

function limited(options: Partial<GateOptions<Request>> = {}, max = '5/1m') {
  const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: [max] } });
  const gate = createGate<Request>({ limiter, account: () => 'a', route: () => 'r', ...options });
  return { gate, remaining: async () => (await limiter.peek({ account: 'a', route: 'r' }))[0]?.remaining };
}

const request = (init?: RequestInit) => new Request('http://x/', init);
const remainingOf = ({ headers }: Response) => headers.get('x-ratelimit-remaining');

describe('withHeadgate', () => {
  it('passes on all arguments of the runtime, and the result of the handler', async () => {
    const { gate } = limited();
    const handler = withHeadgate(gate, (given: Request, env: { name: string }, more: number) =>
      Response.json([given.url, env.name, more]),
    );
    expect(await (await handler(request(), { name: 'env' }, 3)).json()).toEqual(['http://x/', 'env', 3]);
  });

  it('accepts events that contain the request, as in SvelteKit and Remix', async () => {
    const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['1/1m'] } });
    type Event = { readonly request: Request; readonly route: { readonly id: string } };
    const gate = createGate<Event>({ limiter, account: () => 'a', route: ({ route }) => route.id });
    const event = { request: request(), route: { id: '/things/[id]' } };
    const loader = withHeadgate(gate, ({ route }) => new Response(route.id));
    expect(await (await loader(event)).text()).toBe('/things/[id]');
    const handle = headgate(gate);
    expect((await handle(event, () => new Response('resolved'))).status).toBe(429);
  });

  it('adds the fields to an immutable response', async () => {
    const { gate } = limited();
    const redirect = await withHeadgate(gate, () => Response.redirect('http://y/', 302))(request());
    expect([redirect.status, redirect.headers.get('location'), remainingOf(redirect)]).toEqual([302, 'http://y/', '4']);
  });

  it('does not join cookies, and does not lose the reason phrase', async () => {
    const { gate } = limited();
    const headers: [string, string][] = [
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=2'],
    ];
    const reply = await withHeadgate(gate, () => new Response('', { headers, statusText: 'Fine' }))(request());
    expect([reply.headers.getSetCookie(), reply.statusText]).toEqual([['a=1', 'b=2'], 'Fine']);
  });

  it('passes an upgrade on: undefined, or a response with status 0', async () => {
    const { gate } = limited();
    expect(await withHeadgate(gate, () => undefined)(request())).toBeUndefined();
    const failed = Response.error();
    expect(await withHeadgate(gate, () => failed)(request())).toBe(failed);
  });

  it('S12: the charge of an answer from a cache, and of an abandoned passage, is refunded', async () => {
    const { gate, remaining } = limited();
    await withHeadgate(gate, (given) => {
      servedFromCache(given);
      return new Response();
    })(request());
    await withHeadgate(gate, async (given) => {
      await passageOf(given)?.abandon();
      return new Response(null, { status: 503 });
    })(request());
    await pause(1);
    expect(await remaining()).toBe(5);
    let seen: unknown;
    await withHeadgate(gate, (given) => {
      seen = passageOf(given)?.decision?.shown?.remaining;
      return new Response();
    })(request());
    expect([seen, passageOf(request())]).toEqual([4, undefined]);
  });

  it('throws the error of a handler on to the caller', async () => {
    const { gate } = limited();
    const throwing = withHeadgate(gate, () => {
      throw new Error('thrown');
    });
    await expect(throwing(request())).rejects.toThrow('thrown');
    await expect(withHeadgate(gate, () => Promise.reject(new Error('rejected')))(request())).rejects.toThrow(
      'rejected',
    );
  });

  it("the gate's own answer to HEAD has no body", async () => {
    const { gate } = limited({}, '0/1m');
    const head = await withHeadgate(gate, () => new Response())(request({ method: 'HEAD' }));
    expect([head.status, head.body, Number(head.headers.get('content-length')) > 0]).toEqual([422, null, true]);
  });
});

describe('with an idempotency key', () => {
  it('if a handler throws, its outcome is stored without a body, and the error is thrown on', async () => {
    const web = keyedWeb(() => {
      throw new Error('thrown');
    });
    await expect(web.post()).rejects.toThrow('thrown');
    expect([(await web.retry()).status, web.runs, await web.remaining()]).toEqual([409, 1, 999]);
  });

  it.each<[string, unknown]>([
    ['fields that cannot be set', { status: 200, headers: null, body: null }],
    ['a body that cannot be read', { status: 200, headers: new Headers(), body: {} }],
  ])('a response that cannot be sent is stored as an outcome without a body: %s', async (_name, given) => {
    const web = keyedWeb(() => given as Response);
    await expect(web.post()).rejects.toThrow(TypeError);
    expect([(await web.retry()).text, web.runs]).toEqual([expect.stringContaining('completed with status 500'), 1]);
  });

  it('S16, I6: a 429 of the handler releases the key', async () => {
    const web = keyedWeb(() => new Response('', { status: web.runs === 1 ? 429 : 200 }));
    expect([(await web.post()).status, (await web.retry()).status]).toEqual([429, 200]);
  });

  it('I7: an answer shorter than its content-length has broken off and is never replayed', async () => {
    const web = keyedWeb(() => new Response('abc', { status: 201, headers: { 'content-length': '10' } }));
    expect((await web.post()).status).toBe(201);
    expect([(await web.retry()).status, web.runs]).toEqual([409, 1]);
  });

  it.each<[string, () => Response]>([
    ['no body', () => Response.redirect('http://y/', 303)],
    ['a body that is empty', () => new Response(new ReadableStream({ start: (controller) => controller.close() }))],
  ])('I4: the replay of an answer with %s has no body, so that no server adds a content type', async (_name, given) => {
    const web = keyedWeb(given);
    const [first, second] = [await web.post(), (await web.fetch(postOf())) as Response];
    expect([first.body, second.body, second.headers.get('idempotency-replayed')]).toEqual([null, null, 'true']);
  });

  it('the outcome of an upgrade is stored without a body', async () => {
    const web = keyedWeb(() => undefined);
    expect(await web.post()).toBeUndefined();
    expect((await web.retry()).status).toBe(409);
  });

  it('I4: an immutable answer, an answer to HEAD and cookies are sent; a replay mark of the handler is removed', async () => {
    const web = keyedWeb((given) => {
      if (given.method === 'HEAD') return new Response('x', { headers: { 'content-length': '1234' } });
      const headers: [string, string][] = [
        ['set-cookie', 'a=1'],
        ['set-cookie', 'b=2'],
        ['idempotency-replayed', 'true'],
      ];
      return given.url.endsWith('/to') ? Response.redirect('http://y/', 303) : new Response('ok', { headers });
    });
    const post = await web.post();
    expect([post.headers.getSetCookie(), post.headers.get('idempotency-replayed')]).toEqual([['a=1', 'b=2'], null]);
    const ask = (method: string, url: string) =>
      web.fetch(new Request(url, { method, headers: { 'idempotency-key': url } })) as Promise<Response>;
    const [, redirect] = [await ask('POST', 'http://x/to'), await ask('POST', 'http://x/to')];
    expect([redirect.status, redirect.headers.get('location')]).toEqual([303, 'http://y/']);
    const [head, again] = [await ask('HEAD', 'http://x/h'), await ask('HEAD', 'http://x/h')];
    expect([head.headers.get('content-length'), again.headers.get('content-length')]).toEqual(['1234', null]);
    expect(again.headers.get('idempotency-replayed')).toBe('true');
  });

  it('I11: the key is released if the client goes before the handler runs', async () => {
    const web = keyedWeb(() => new Response('ok'));
    const gone = new AbortController();
    web.line.next('dispatch', 'hung');
    const asked = web.post({ signal: gone.signal });
    await pause(10);
    gone.abort();
    web.line.deliver();
    expect([(await asked).status, web.runs, await web.remaining()]).toEqual([499, 0, 1_000]);
    expect((await web.retry()).text).toBe('ok');
  });

  it('I11: work that continues after the head is passed to waitUntil of the runtime', async () => {
    const known: Promise<unknown>[] = [];
    const web = keyedWeb(
      () =>
        new Response(
          new ReadableStream({
            async start(controller) {
              await pause(10);
              controller.enqueue(new TextEncoder().encode('late'));
              controller.close();
            },
          }),
        ),
    );
    const response = await web.post({}, 'env', { waitUntil: (promise: Promise<unknown>) => known.push(promise) });
    await response.body?.cancel();
    expect(known).toHaveLength(1);
    await known[0];
    expect(await web.retry()).toEqual({ status: 200, replayed: 'true', text: 'late' });
  });

  it('I12: if the store is down, the answer is 503 and the handler does not run', async () => {
    const web = keyedWeb(() => new Response('ok'));
    web.line.always = 'lost';
    expect([(await web.post()).status, web.runs]).toEqual([503, 0]);
  });

  it('a duplicate stops waiting when its client goes', async () => {
    let answer = (_: Response) => {};
    const web = keyedWeb(() => new Promise<Response>((resolve) => (answer = resolve)));
    const first = web.post();
    await pause(10);
    const gone = new AbortController();
    const second = web.fetch(postOf({ signal: gone.signal })) as Promise<Response>;
    await pause(10);
    gone.abort();
    expect((await second).status).toBe(409);
    answer(new Response('ok'));
    expect([(await first).status, web.runs]).toEqual([200, 1]);
  });
});
