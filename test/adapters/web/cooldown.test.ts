import { Elysia } from 'elysia';
import { H3, HTTPError } from 'h3';
import { Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { describe, expect, it, vi } from 'vitest';
import * as elysia from '../../../src/adapters/elysia.ts';
import * as fetchAdapter from '../../../src/adapters/fetch.ts';
import * as h3 from '../../../src/adapters/h3.ts';
import * as hono from '../../../src/adapters/hono.ts';
import { createGate, createIdempotency, createLimiter, type GateOptions } from '../../../src/index.ts';
import { createMemoryClaimStore } from '../../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../../src/stores/memory/limits.ts';

type Send = (request: Request) => MaybeResponse;
type MaybeResponse = Response | Promise<Response>;

/** Options of a gate whose store needs `stored` to begin a cooldown. */
function slowStore(stored: Promise<void>) {
  const store = createMemoryStore();
  const begin = store.cooldown?.bind(store);
  const spy = vi
    .spyOn(store, 'cooldown')
    .mockImplementation(((...args: Parameters<NonNullable<typeof begin>>) =>
      stored.then(() => begin?.(...args))) as never);
  const options = {
    limiter: createLimiter({ store, limits: ['9/1m'] }),
    account: () => 'a',
    cooldown: { scope: 'account' },
    validate: false,
  } satisfies GateOptions<unknown>;
  return { options, spy };
}

const refuse = () => new Response('slow down', { status: 429, headers: { 'retry-after': '3' } });
const unavailable = () => new Response('later', { status: 503, headers: { 'retry-after': '3' } });
const keyed = { idempotency: createIdempotency({ store: createMemoryClaimStore() }) };

const ADAPTERS: Record<string, (options: GateOptions<unknown>) => Send> = {
  fetch: (options) => fetchAdapter.withHeadgate(createGate<Request>(options), refuse),
  'fetch, 503 with retry-after': (options) => fetchAdapter.withHeadgate(createGate<Request>(options), unavailable),
  'fetch, with a key': (options) => {
    const idempotent = (request: Request) => fetchAdapter.idempotentRequest(request, { scope: 's' });
    return fetchAdapter.withHeadgate(createGate<Request>({ ...options, ...keyed, idempotent }), async () => refuse());
  },
  hono: (options) => {
    const app = new Hono().use(hono.headgate(createGate(options))).all('*', () => refuse());
    return (request) => app.fetch(request);
  },
  'hono, thrown': (options) => {
    const app = new Hono().use(hono.headgate(createGate(options))).all('*', () => {
      throw new HTTPException(429, { res: refuse() });
    });
    return (request) => app.fetch(request);
  },
  h3: (options) => {
    const app = new H3().use(h3.headgate(createGate(options))).all('/**', refuse);
    return (request) => app.fetch(request);
  },
  'h3, thrown': (options) => {
    const app = new H3().use(h3.headgate(createGate(options))).all('/**', () => {
      throw new HTTPError({ status: 429, headers: { 'retry-after': '3' } });
    });
    return (request) => app.fetch(request);
  },
  elysia: (options) => {
    const app = new Elysia().use(elysia.headgate(createGate(options))).all('*', refuse);
    return (request) => app.handle(request);
  },
};

describe("S30: the provider's refusal leaves once the pause of its account is stored", () => {
  it.each(Object.entries(ADAPTERS))('%s', async (_name, adapter) => {
    let store = () => {};
    const stored = new Promise<void>((resolve) => {
      store = resolve;
    });
    const { options, spy } = slowStore(stored);
    const send = adapter(options);
    const request = new Request('http://localhost/', { method: 'POST', headers: { 'idempotency-key': 'k' } });
    let response: Response | undefined;
    const answered = Promise.resolve(send(request)).then((value) => {
      response = value;
    });
    await vi.waitFor(() => expect(spy).toHaveBeenCalledTimes(1));
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    expect(response).toBeUndefined();
    store();
    await answered;
    expect(response?.status).toBeOneOf([429, 503]);
    expect(response?.headers.get('retry-after')).toBe('3');
    expect(await options.limiter.blocked({ account: 'a' })).toMatchObject({ reason: 'provider' });
  });
});
