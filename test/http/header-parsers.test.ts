import type { IncomingMessage } from 'node:http';
import { request } from 'node:http';
import { listen } from 'headgate-testbed/listen';
import { parseRateLimit } from 'ratelimit-header-parser';
import { type InnerList, type Item, parseList } from 'structured-headers';
import { afterEach, describe, expect, it } from 'vitest';
import { withHeadgate } from '../../src/adapters/node.ts';
import { type RateLimitFields, rateLimitFields } from '../../src/http/index.ts';
import { createGate, createLimiter } from '../../src/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';

/*
 * What docs/http.md says about the parsers that clients use, with these parsers and answers over a socket.
 */

let close: (() => Promise<void>) | undefined;
afterEach(() => close?.());

/** A server whose answers have these fields. The second request is rejected. */
async function serve(headers: RateLimitFields) {
  const gate = createGate<IncomingMessage>({
    limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['1/1m', '100/1d'] } }),
    account: () => 'a',
    route: () => 'r',
    headers,
  });
  const server = await listen(withHeadgate(gate, (_, response) => void response.end('ok')));
  close = server.close;
  return server.url;
}

/** The fields of a response as `node:http` gives them to a client: a plain object. */
function askWithNode(url: string): Promise<Record<string, string>> {
  return new Promise((resolve, reject) => {
    const sent = request(url, (response) => resolve(response.resume().headers as Record<string, string>));
    sent.on('error', reject).end();
  });
}

const CLIENTS = { fetch, 'node:http': askWithNode };

describe.each(Object.entries(CLIENTS))('ratelimit-header-parser, with a response of %s', (_, ask) => {
  it('reads x-ratelimit-*', async () => {
    const url = await serve('x-ratelimit');
    const [accepted, rejected] = [parseRateLimit(await ask(url)), parseRateLimit(await ask(url))];
    expect(accepted).toMatchObject({ limit: 100, remaining: 99, used: 1 });
    expect(rejected).toMatchObject({ limit: 1, remaining: 0, used: 1 });
    const seconds = (Number(rejected?.reset) - Date.now()) / 1_000;
    expect(seconds).toBeGreaterThan(30);
    expect(seconds).toBeLessThan(62);
  });

  it.each<[string, RateLimitFields]>([
    ['of the IETF', ['ietf']],
    ['of both styles', ['x-ratelimit', 'ietf']],
    ['of both styles, in the other order', ['ietf', 'x-ratelimit']],
  ])('reads no figure from the fields %s', async (_name, headers) => {
    const parsed = parseRateLimit(await ask(await serve(headers)));
    expect(parsed).toMatchObject({ limit: Number.NaN, remaining: Number.NaN, used: Number.NaN });
    expect(Number(parsed?.reset)).toBeNaN();
  });

  it('finds nothing if the gate shows nothing', async () => {
    expect(parseRateLimit(await ask(await serve([])))).toBeUndefined();
  });
});

it('a parser of structured fields reads names and partition keys; a name of both limits is used once', () => {
  const limiter = createLimiter({
    store: createMemoryStore(),
    limits: {
      routes: { r: [{ name: 'burst', window: '5/1s' }, '9/1m'] },
      allMethods: [
        { name: 'burst', window: '60/1m' },
        { name: 'daily', window: '5000/1d' },
      ],
    },
  });
  const decision = limiter.consumeSync({ account: 'a', route: 'r' });
  const fields = rateLimitFields(decision, 'ietf', 'Zoë');
  const names = ['burst', 'route-1m', 'all-methods-1m', 'daily'];
  const pk = new TextEncoder().encode('Zoë').buffer;
  const items = (name: string) => parseList(fields[name] as string) as Item[];
  expect(items('ratelimit-policy').map(([name, parameters]) => [name, Object.fromEntries(parameters)])).toEqual([
    ['burst', { q: 5, w: 1, pk }],
    ['route-1m', { q: 9, w: 60, pk }],
    ['all-methods-1m', { q: 60, w: 60, pk }],
    ['daily', { q: 5000, w: 86_400, pk }],
  ]);
  expect(items('ratelimit').map(([name, parameters]) => [name, parameters.get('pk')])).toEqual(
    names.map((name) => [name, pk]),
  );
  expect(rateLimitFields(decision, 'ietf').ratelimit).not.toContain('pk');
});

it('a parser of structured fields reads the fields of the IETF', async () => {
  const { headers } = await fetch(await serve(['x-ratelimit', 'ietf']));
  const read = (name: string) =>
    parseList(headers.get(name) ?? '').map(([item, parameters]: Item | InnerList) => [item, ...parameters]);
  expect(read('ratelimit-policy')).toEqual([
    ['all-methods-1m', ['q', 1], ['w', 60]],
    ['all-methods-1d', ['q', 100], ['w', 86_400]],
  ]);
  expect(read('ratelimit')).toEqual([
    ['all-methods-1m', ['r', 0], ['t', 60]],
    ['all-methods-1d', ['r', 99], ['t', 86_400]],
  ]);
});
