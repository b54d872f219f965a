import { describe, it } from 'vitest';
import { idempotentRequest, withHeadgate } from '../../../src/adapters/fetch.ts';
import { createClientIp } from '../../../src/address/client-ip.ts';
import { fingerprint } from '../../../src/http/index.ts';
import { createGate, createIdempotency, createLimiter } from '../../../src/index.ts';
import { createMemoryClaimStore, createMemoryStore } from '../../../src/memory.ts';
import { createJobWorker } from '../../../src/waiting/index.ts';
import type { SuiteServer } from '../../support/adapter-suite/subject.ts';
import { listenWeb } from '../../support/listen-web.ts';

const LEASE_MS = 300;

/** The fingerprints of the requests below, as Node computes them. */
const FINGERPRINTS = [
  '1.sFzhjSMbOwU_VSqQcf_qGr6BYfFfVIUV0DU_TliobB4.JvEjPs_DFHe7bhGul8CIs-3Qj.DOKr61l7R6o9b05i',
  '1.mBFRLc_Nkn4OtnYpdpaa-5uk3cQx8hHykxTv6AADlQA.UVqZu3h-XKZWIr7ZPs47HheAj._b9BFdwH',
  '1.Nkj4iG-5vuHojeJsq8Vj-RWF06GkacmCBKPVrNpkhNE.JvEjPs_DFHe7bhGuFVRJpsIOf.nRGgBf6Oo3hTWv93',
  '1.j5fLIuvQ1KXirNnyZyXYIEvo07OuR1P0ljkFeAX5RvI.JvEjPs_DFHe7bhGuq6q3-mB_m.XTv8c_-ov1jWydyp',
  '1.Wy_9BDFhlg79tn-2xx979iFyaDeYAvFSCQ2u-FcmtJU.JvEjPs_DFHe7bhGuzp6adhiAb.',
];

// Created outside of any request, as programs do. There, Workers have neither time nor randomness.
const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['5/1m'] } });
const idempotency = createIdempotency({ store: createMemoryClaimStore() });
const gate = createGate<Request>({
  limiter,
  idempotency,
  account: ({ headers }) => headers.get('x-account') ?? undefined,
  route: ({ method }) => `${method} /`,
  idempotent: (request) => idempotentRequest(request, { scope: 'app_1' }),
});
const gateOfShortLeases = createGate<Request>({
  account: () => undefined,
  route: () => undefined,
  limiter,
  idempotency: createIdempotency({ store: createMemoryClaimStore(), leaseMs: LEASE_MS }),
  idempotent: (request) => idempotentRequest(request, { scope: 'app_1' }),
});

function same(actual: unknown, expected: unknown): void {
  const [is, should] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (is !== should) throw new Error(`is ${is}, should be ${should}`);
}

const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const ask = (account: string, { key = account, body = '{"a":1}' } = {}) =>
  new Request('http://127.0.0.1/', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key, 'x-account': account },
    body,
  });

const LONG = Uint8Array.from({ length: 70_000 }, (_, i) => i % 256);

async function* piece(body: string | Uint8Array) {
  yield typeof body === 'string' ? new TextEncoder().encode(body) : body;
}

describe('called directly by a program', () => {
  it('a limiter decides, rejects and refunds', async () => {
    const subject = { account: 'direct', route: 'GET /' };
    const first = limiter.consumeSync({ ...subject, cost: 3 });
    const second = await limiter.consume({ ...subject, cost: 3 });
    same([first.accepted, first.shown?.remaining, second.accepted], [true, 2, false]);
    const resetMs = second.shown?.resetMs ?? 0;
    same([resetMs > 0 && resetMs <= 60_000, Number.isInteger(resetMs)], [true, true]);
    same([await limiter.refund(first), (await limiter.peek(subject))[0]?.remaining], [true, 5]);
  });

  it('a worker waits until the window is over', async () => {
    const windowMs = 200;
    const limits = { allMethods: [{ max: 1, durationMs: windowMs }] };
    const worker = createJobWorker(createLimiter({ store: createMemoryStore(), limits }));
    const subject = { account: 'direct', route: 'GET /' };
    const decisions = await Promise.all([worker.acquire(subject), worker.acquire(subject)]);
    const [first, second] = decisions.map(({ decidedAt }) => decidedAt) as [number, number];
    same([second - first >= windowMs, worker.waiting], [true, 0]);
  });

  it('I3: a request has the same fingerprint as in every other runtime', async () => {
    const head = { method: 'POST', path: '/é', contentType: 'application/json' };
    const multipart = 'multipart/form-data; boundary=b';
    const part = (name: string, value: string) =>
      `--b\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
    const parts = `${part('a', 'x'.repeat(9_000))}${part('ä', '-'.repeat(99))}--b--\r\n`;
    const results = await Promise.all([
      fingerprint({ ...head, body: piece('{"b":[1.0,"✓"],"a":null}') }),
      fingerprint({ ...head, account: 'acc_1', body: piece('{"a":1}') }, { secret: 'secret' }),
      fingerprint({ ...head, contentType: 'application/x-www-form-urlencoded', body: piece('a=1&b=%E2%9C%93') }),
      fingerprint({ ...head, contentType: multipart, body: piece(parts) }),
      fingerprint({ ...head, contentType: 'text/plain', body: piece(LONG) }),
    ]);
    same(
      results.map(({ value }) => value),
      FINGERPRINTS,
    );
  });

  it('I4: an operation runs once for its key, and its result is replayed only for the same request', async () => {
    const run = (request: unknown) =>
      idempotency.run({ scope: 'app_1', key: 'run' }, request, () => Promise.resolve('sent'));
    const results = [await run({ a: 1, b: 2 }), await run({ b: 2, a: 1 }), await run({ a: 2 })];
    same(
      results.map(({ kind }) => kind),
      ['executed', 'replayed', 'refused'],
    );
  });

  it('I4: a handler runs once for its key, and its response is replayed byte for byte', async () => {
    let runs = 0;
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
    const handler = withHeadgate(gate, () => {
      runs++;
      return new Response(bytes, { status: 201, headers: { 'x-own': '1' } });
    });
    const [first, second] = [await handler(ask('replay')), await handler(ask('replay', { body: '{ "a": 1 }' }))];
    const other = await handler(ask('replay', { body: '{"a":2}' }));
    same([first.status, second.status, other.status, runs], [201, 201, 409, 1]);
    same([second.headers.get('idempotency-replayed'), second.headers.get('x-own')], ['true', '1']);
    for (const response of [first, second]) same([...new Uint8Array(await response.arrayBuffer())], [...bytes]);
  });

  it('S8: a request over the limit gets 429 with retry-after', async () => {
    const handler = withHeadgate(gate, () => new Response('ok'));
    const responses: Response[] = [];
    for (let i = 0; i < 6; i++) responses.push(await handler(ask('limited', { key: `limited ${i}` })));
    same(
      responses.map(({ status }) => status),
      [200, 200, 200, 200, 200, 429],
    );
    const seconds = Number(responses.at(-1)?.headers.get('retry-after'));
    same([seconds > 0 && seconds <= 60], [true]);
  });

  it('I9: a handler that takes longer than its lease renews it, even if another request started the timer', async () => {
    let runs = 0;
    const handler = withHeadgate(gateOfShortLeases, async () => {
      if (++runs > 1) await later(LEASE_MS * 3);
      return new Response(`run ${runs}`);
    });
    const server: SuiteServer = await listenWeb(handler);
    const send = async (key: string) => {
      const request = new Request(`http://127.0.0.1:${server.port ?? 80}/`, ask(key));
      return (await (server.fetch ?? fetch)(request)).text();
    };
    same(await send('short'), 'run 1');
    const long = send('long');
    await later(LEASE_MS * 2);
    same([await send('long'), await long, runs], ['run 2', 'run 2', 2]);
    await server.close();
  });

  it('a client behind a proxy has one address', () => {
    const clientIp = createClientIp({ trustedProxies: 1 });
    same(clientIp('10.0.0.1', { 'x-forwarded-for': '2001:db8::1' }), '2001:db8::/56');
  });
});
